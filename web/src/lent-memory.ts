// Memory of the module for applications: env.tenon.allocate and env.tenon.free.
import type {TenonFlags} from '../common/env.js';
import {type Core, loadCore} from './core.js';

const owners = new WeakMap<Uint8Array, Core>();

export const lentMemory: Required<Pick<TenonFlags, 'allocate' | 'free'>> = {
  async allocate(byteLength) {
    const operation = 'env.tenon.allocate';
    if (!Number.isSafeInteger(byteLength) || byteLength < 0) {
      throw new RangeError(`${operation}: expected a number of bytes, got ${byteLength}`);
    }
    const core = await loadCore();
    const memory = core.lend(operation, byteLength);
    owners.set(memory, core);
    return memory;
  },

  free(memory) {
    const core = owners.get(memory);
    if (core === undefined) {
      throw new TypeError('env.tenon.free: expected what env.tenon.allocate returned, once');
    }
    owners.delete(memory);
    if (!core.isDead) core.free(memory.byteOffset);
  },
};
