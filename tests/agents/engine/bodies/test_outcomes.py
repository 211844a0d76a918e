"""The outcome file, as whoever takes a session over reads it."""

from agents.engine.bodies.outcomes import OutcomeFile, outcomes_path, read_outcomes
from agents.tools.calls import Outcome


def test_a_line_that_was_cut_off_is_no_outcome(tmp_path):
    file = OutcomeFile(tmp_path, 1)
    file.add(7, Outcome("completed", result=1, digest="d"))
    file.flush()
    file.close()
    with outcomes_path(tmp_path, 1).open("ab") as whole:
        whole.write(b'{"key": 8, "outcome": "comp')
    assert read_outcomes(outcomes_path(tmp_path, 1)) == {7: Outcome("completed", result=1, digest="d")}


def test_a_runner_of_the_release_before_left_its_outcomes_in_its_own_words(tmp_path):
    outcomes_path(tmp_path, 1).write_bytes(b'{"key":7,"outcome":"completed","result":1,"said":"d","before":"b"}\n')
    assert read_outcomes(outcomes_path(tmp_path, 1)) == {7: Outcome("completed", result=1, digest="d", before="b")}
