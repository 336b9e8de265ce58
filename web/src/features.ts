// What the engine must have and may have, and which of the two modules it gets.
import {env} from '../common/env.js';

// (module (func (result v128) i32.const 0 i8x16.splat)), which only an engine with SIMD accepts.
const SIMD_MODULE = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15,
  11,
]);

// The same with f32x4.relaxed_madd of three such values.
const RELAXED_SIMD_MODULE = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 19, 1, 17, 0, 65, 0, 253, 15,
  65, 0, 253, 15, 65, 0, 253, 15, 253, 133, 2, 11,
]);

function need(feature: string, probe: Uint8Array): void {
  if (WebAssembly.validate(probe as BufferSource)) return;
  throw new Error(`WebAssembly here lacks a feature that is needed: ${feature}`);
}

// Error: the engine lacks what the module needs.
export function checkEngine(): void {
  need('SIMD128', SIMD_MODULE);
  if (env.wasm.simd === 'relaxed') need('relaxed SIMD', RELAXED_SIMD_MODULE);
}

// The file name of the module: the one with relaxed SIMD if the engine has it and env.wasm.simd
// allows it.
export function binaryName(): string {
  const simd = env.wasm.simd ?? true;
  const mayRelax = simd === true || simd === 'relaxed';
  return mayRelax && WebAssembly.validate(RELAXED_SIMD_MODULE as BufferSource)
    ? 'tenon.relaxed.wasm'
    : 'tenon.wasm';
}
