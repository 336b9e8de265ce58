// Marks on the browser's timeline, if env.trace is set.
import {env} from './env.js';

function isOn(): boolean {
  return Boolean(env.trace ?? env.wasm.trace);
}

// A mark with the device that the label is about.
export function TRACE(deviceType: string, label: string): void {
  if (isOn()) (console as {timeStamp?(label: string): void}).timeStamp?.(`${deviceType}::ORT::${label}`);
}

// The name of the function that called the caller of this file's functions, as far as the engine
// shows its stack: the line after the last one with `ours`.
function callerOf(ours: string): string {
  const lines = (new Error().stack ?? '').split('\n');
  const last = lines.map((line) => line.includes(ours)).lastIndexOf(true);
  return lines[last + 1]?.trim().split(' ')[1] ?? '';
}

function traceFunction(ours: string, mark: string, extra: string | undefined): void {
  const suffix = extra ? `::${extra}` : '';
  if (isOn()) TRACE('CPU', `FUNC_${mark}::${callerOf(ours)}${suffix}`);
}

// Marks where the calling function begins and ends.
export function TRACE_FUNC_BEGIN(extraMsg?: string): void {
  traceFunction('TRACE_FUNC_BEGIN', 'BEGIN', extraMsg);
}

export function TRACE_FUNC_END(extraMsg?: string): void {
  traceFunction('TRACE_FUNC_END', 'END', extraMsg);
}

// Measure the time between them, under a name.
export function TRACE_EVENT_BEGIN(extraMsg?: string): void {
  if (isOn()) console.time(`ORT::${extraMsg}`);
}

export function TRACE_EVENT_END(extraMsg?: string): void {
  if (isOn()) console.timeEnd(`ORT::${extraMsg}`);
}
