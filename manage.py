#!/usr/bin/env python3
"""Django's command line for Orrery."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        if sys.argv[1:2] == ["qcluster"]:
            from project.unusable import refuse_unusable_database

            refuse_unusable_database()
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:  # its sentence is for whoever has set the setting; a traceback would hide it
        sys.exit(str(error))
    except Exception as error:
        from project.unusable import why_unusable

        if not (why := why_unusable(error)):
            raise
        sys.exit(why)
