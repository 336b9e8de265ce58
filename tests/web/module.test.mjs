// The module that sessions use: it is loaded once, again after a failure, and anew after a trap.
// Every test here depends on those before it.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import {pathToFileURL} from 'node:url';

import {identity, sumAndProduct} from './model.mjs';
import {DIGITS, load, PACKAGE, printed} from './package.mjs';

const {env, InferenceSession, Tensor} = await load();
const {loadCore} = await load('core');

const one = () => new Tensor('float32', [1]);

// WB-29
test('names the feature that an engine lacks', async (t) => {
  t.mock.method(WebAssembly, 'validate', () => false);
  await assert.rejects(InferenceSession.create(identity('float32')), /SIMD128/);
});

// WB-26
test('tries again after it could not be loaded', async (t) => {
  t.mock.method(WebAssembly, 'compile', async () => {
    throw new Error('no memory is left');
  });
  await assert.rejects(InferenceSession.create(identity('float32')), /no memory is left/);
  env.wasm.wasmPaths = '/no/such/folder/';
  await assert.rejects(
    InferenceSession.create(identity('float32')),
    /env\.wasm\.wasmPaths: \/no\/such\/folder\/tenon\.wasm: .*no such file.*no memory is left/,
  );
  env.wasm.wasmPaths = undefined;
});

// WB-25
test('says which settings are wrong', async () => {
  for (const [name, values] of Object.entries({
    numThreads: [-1, 1.5, '2'],
    simd: ['wide', 1],
    proxy: ['yes'],
    trace: [1],
    initTimeout: [-1, '5'],
    wasmPaths: [7, null, {wasm: 7}],
    wasmBinary: ['bytes', [1, 2]],
  })) {
    for (const value of values) {
      env.wasm[name] = value;
      const creation = InferenceSession.create(identity('float32'));
      await assert.rejects(creation, new RegExp(`env\\.wasm\\.${name}: expected`), name);
    }
    delete env.wasm[name];
  }
});

// WB-25
test('gives up when env.wasm.initTimeout has passed', async (t) => {
  env.wasm.initTimeout = 1;
  t.mock.method(WebAssembly, 'compile', () => new Promise(() => {}));
  await assert.rejects(InferenceSession.create(identity('float32')), /not there after 1 ms/);
  delete env.wasm.initTimeout;
});

// WB-1: programs for onnxruntime-web may name the modules of that package.
test('is its own if the settings name another program, with one warning', async () => {
  env.wasm.wasmPaths = '/no/such/folder/';
  const warnings = await printed('warn', async () => {
    const session = await InferenceSession.create(identity('float32'));
    await session.release();
  });
  assert.equal(warnings.length, 1);
  assert.match(warnings[0], /^env\.wasm\.wasmPaths: \/no\/such\/folder\/tenon\.wasm is not used/);
  env.wasm.wasmPaths = undefined;
});

// WB-25: a prefix as a URL, and the module under a name of onnxruntime-web.
test('is loaded from the place that the settings name', async () => {
  const program = (paths) => `
    import {env, InferenceSession} from '${pathToFileURL(path.join(PACKAGE, 'dist/src/index.js'))}';
    env.wasm.wasmPaths = ${paths};
    console.warn = (text) => console.log(text);
    await InferenceSession.create(${JSON.stringify(DIGITS)});
    console.log('created');`;
  const folder = pathToFileURL(path.join(PACKAGE, 'dist/'));
  for (const paths of [
    `new URL('${folder}')`,
    `'${folder}'`,
    `{wasm: '${folder}ort-wasm-simd-threaded.jsep.wasm', mjs: '${folder}none.mjs'}`,
  ]) {
    const args = ['--input-type=module', '-e', program(paths)];
    assert.equal(execFileSync(process.execPath, args, {encoding: 'utf8'}), 'created\n', paths);
  }
});

// WB-8
test('serves any number of sessions at once, the first ones too', async () => {
  const sessions = await Promise.all(
    Array.from({length: 8}, (_, i) =>
      InferenceSession.create(identity(i % 2 ? 'float32' : 'int32'), {
        executionProviders: i % 4 < 2 ? ['wasm'] : ['cpu', 'wasm'],
      }),
    ),
  );
  const results = await Promise.all(
    sessions.map((session, i) =>
      session.run({x: new Tensor(i % 2 ? 'float32' : 'int32', [i], [1])}),
    ),
  );
  assert.deepEqual(
    results.map(({y}) => y.data[0]),
    [0, 1, 2, 3, 4, 5, 6, 7],
  );
});

test('refuses what does not fit into its memory, and goes on', async () => {
  const core = await loadCore();
  assert.throws(() => core.allocate('a test', 2 ** 32 - 64), {
    code: 1,
    message: /^a test: out of memory: 4294967232 bytes/,
  });
  const session = await InferenceSession.create(identity('float32'));
  assert.deepEqual([...(await session.run({x: one()})).y.data], [1]);
});

// WB-35, WB-106
test('is replaced after a trap, which its sessions tell of', async (t) => {
  const [first, second] = [
    await InferenceSession.create(identity('float32')),
    await InferenceSession.create(sumAndProduct()),
  ];
  // An import that fails ends the module just as a trap does.
  const fail = t.mock.method(performance, 'now', () => {
    throw new WebAssembly.RuntimeError('unreachable');
  });
  const options = {extra: {'tenon.run_report': '1'}}; // which takes the time
  await assert.rejects(first.run({x: one()}, options), /the WebAssembly module stopped: unreach/);
  fail.mock.restore();
  const stopped = /the WebAssembly module stopped: unreachable/;
  await assert.rejects(first.run({x: one()}), stopped);
  await assert.rejects(second.run({a: one(), b: one()}), stopped);
  await assert.rejects(second.release(), stopped);
  env.wasm.wasmBinary = readFileSync(path.join(PACKAGE, 'dist/tenon.wasm'));
  env.wasm.wasmPaths = '/no/such/folder/'; // not looked at: the bytes are there
  const next = await InferenceSession.create(identity('float32'));
  assert.deepEqual([...(await next.run({x: one()})).y.data], [1]);
});

test('checks the level of its log', () => {
  assert.equal(env.logLevel, 'warning');
  assert.throws(() => (env.logLevel = 'loud'), /verbose, info, warning, error, fatal/);
  env.logLevel = 'error';
  assert.equal(env.logLevel, 'error');
});
