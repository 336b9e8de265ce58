// The sizes of what pages load.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import {brotliCompressSync, constants} from 'node:zlib';

import {PACKAGE} from './package.mjs';

const bytesOf = (name) => readFileSync(path.join(PACKAGE, 'dist', name));

const KB = 1024;

// The greatest size of each bundle.
const GREATEST_SIZES = {
  'ort.wasm.min.mjs': 40 * KB,
  'ort.wasm.min.js': 40 * KB,
  'ort.min.mjs': 90 * KB,
  'ort.min.js': 90 * KB,
  'ort.proxy-worker.min.mjs': 90 * KB,
  'ort.proxy-client.min.mjs': 10 * KB,
};

for (const [name, greatest] of Object.entries(GREATEST_SIZES)) {
  // WB-110
  test(`${name} has at most ${greatest} bytes`, () => {
    assert.ok(bytesOf(name).length <= greatest, `${bytesOf(name).length} bytes`);
  });
}

// WB-110
test('the module is small', () => {
  const module = bytesOf('tenon.wasm');
  assert.ok(module.length <= 5_000_000, `${module.length} bytes`);
  const params = {[constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_LGWIN]: 24};
  const compressed = brotliCompressSync(module, {params}).length;
  assert.ok(compressed <= 1_500_000, `${compressed} bytes with Brotli`);
});

// WB-110: one module for all providers, and the reference of WebNN apart.
test('the entry of WebAssembly alone has no WebNN, and none has the reference', () => {
  const wasm = bytesOf('ort.wasm.mjs').toString();
  const all = bytesOf('ort.mjs').toString();
  assert.ok(!wasm.includes('createTensor'));
  assert.ok(all.includes('createTensor'));
  assert.ok(!all.includes('opSupportLimitsOf') && !all.includes('webnn-reference/'));
});
