// One command to many tasks: asked once, sent to each that it can mean, and every refusal is told with its task.

import * as api from "../../api.js";
import { plural } from "../../format.js";
import { TASK_ENDED } from "../../states.js";
import { askBefore } from "../asking.js";

const AT_ONCE = 4; // requests under way
const WAITING = new Set(["PENDING", "WAITING_DEPENDENCY"]);

export const COMMANDS = {
  retry: {
    name: "Retry",
    fits: (task) => task.state === "FAILED" || task.state === "CANCELLED",
    others: "have not failed and were not cancelled",
    text: "They begin again, and so does what failed or was skipped downstream of them.",
  },
  cancel: {
    name: "Cancel",
    fits: (task) => !TASK_ENDED.has(task.state),
    others: "have ended",
    text: "Those that run are stopped. What depends on them follows; everything else goes on.",
    isDangerous: true,
  },
  skip: {
    name: "Skip",
    fits: (task) => WAITING.has(task.state),
    others: "have started",
    text: "They never begin. What depends on them follows; nothing is interrupted.",
    isDangerous: true,
  },
};

// Asks, sends, and resolves to {sent, refused: [{task, message}]}, or null when the reader thinks better of it.
export async function commandTasks(kind, tasks, onProgress) {
  const { name, fits, others, text, isDangerous } = COMMANDS[kind];
  const fitting = tasks.filter(fits);
  const left = tasks.length - fitting.length;
  const rest = left ? ` ${plural(left, "other")} of those chosen ${others}, and stay as they are.` : "";
  const said = { title: `${name} ${plural(fitting.length, "task")}?`, verb: `${name} ${plural(fitting.length, "task")}` };
  const asked = await askBefore({ ...said, text: `${text}${rest}`, wantsReason: kind !== "retry", isDangerous });
  if (!asked) return null;
  const reason = asked.reason || `${kind === "skip" ? "skipped" : "cancelled"} in the dashboard`;
  const refused = kind === "retry" ? await retryAll(fitting, onProgress) : await sendEach(fitting, onProgress, sender(kind, reason));
  return { sent: fitting.length, refused };
}

function sender(kind, reason) {
  const send = kind === "skip" ? api.skipTask : api.cancelTask;
  return (task) => send(task.id, reason, api.clientId());
}

// All in one step; where that is refused, one by one, so that each says why.
async function retryAll(tasks, onProgress) {
  const { constellation_id: constellation } = tasks[0];
  const again = (some) => api.retryTasks(constellation, some.map((task) => task.task_id), api.clientId());
  try {
    await again(tasks);
    return [];
  } catch (error) {
    if (!(error instanceof api.Refused)) return tasks.map((task) => ({ task, message: whyNot(error) }));
    return sendEach(tasks, onProgress, (task) => again([task]));
  }
}

async function sendEach(tasks, onProgress, send) {
  const refused = [];
  const waiting = [...tasks];
  let done = 0;
  const work = async () => {
    for (let task = waiting.shift(); task; task = waiting.shift()) {
      await send(task).catch((error) => refused.push({ task, message: whyNot(error) }));
      done += 1;
      onProgress(done, tasks.length);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return refused;
}

function whyNot(error) {
  return error instanceof api.Refused ? error.message : "no answer; nobody knows whether it was taken";
}
