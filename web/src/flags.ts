// Checks the settings in env.wasm, when the module is loaded.
import {env} from '../common/env.js';
import {classOf} from '../common/tensor-class.js';

type Check = (value: unknown) => boolean;

const isBoolean: Check = (value) => typeof value === 'boolean';
const isAddress: Check = (value) => typeof value === 'string' || value instanceof URL;

const CHECKS: Record<string, [expected: string, check: Check]> = {
  numThreads: [
    'a number of threads, or 0',
    (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  ],
  simd: ["true, false, 'fixed' or 'relaxed'", (value) => [true, false, 'fixed', 'relaxed'].includes(value as never)],
  proxy: ['a boolean', isBoolean],
  trace: ['a boolean', isBoolean],
  initTimeout: ['milliseconds, or 0', (value) => typeof value === 'number' && value >= 0],
  wasmPaths: [
    "a prefix of addresses, or {wasm: 'an address'}",
    (value) => {
      if (isAddress(value)) return true;
      if (typeof value !== 'object' || value === null) return false;
      return Object.values(value).every((part) => part === undefined || isAddress(part));
    },
  ],
  wasmBinary: [
    'an ArrayBuffer or a Uint8Array',
    (value) => ['ArrayBuffer', 'SharedArrayBuffer', 'Uint8Array'].includes(classOf(value)),
  ],
};

// TypeError: a setting is none of its values.
export function checkFlags(): void {
  for (const [name, [expected, isValid]] of Object.entries(CHECKS)) {
    const value = (env.wasm as Record<string, unknown>)[name];
    if (value === undefined || isValid(value)) continue;
    throw new TypeError(`env.wasm.${name}: expected ${expected}, got ${String(value)}`);
  }
}
