// The module's threads and its two builds, each case in a process of its own, because a module is
// loaded once.
import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {availableParallelism} from 'node:os';
import path from 'node:path';
import test from 'node:test';
import {fileURLToPath} from 'node:url';
import {promisify} from 'node:util';

import {identity, product} from './model.mjs';
import {load, printed} from './package.mjs';

const {env, InferenceSession, Tensor} = await load();
const {binaryName} = await load('features');

const CHILD = path.join(path.dirname(fileURLToPath(import.meta.url)), 'threads_child.mjs');
const DEADLINE_MS = 60_000;

// WB-45: a process that does not end by itself is an error here.
async function run(threads, ...args) {
  const {stdout} = await promisify(execFile)(
    process.execPath,
    [...args.slice(1), CHILD, threads, ...args.slice(0, 1)],
    {timeout: DEADLINE_MS},
  );
  return JSON.parse(stdout);
}

// WB-37, WB-39, WB-40, WB-103
test('has the same bits at every number of threads', async () => {
  const alone = await run('1');
  assert.equal(alone.workers, 0);
  assert.equal(alone.divided, 0);
  for (const threads of [2, 3, 4]) {
    const outcome = await run(String(threads));
    assert.equal(outcome.workers, threads - 1);
    assert.equal(outcome.digest, alone.digest);
    assert.ok(outcome.divided > 0, 'loops are divided');
    assert.ok(outcome.helped > 0, 'workers took parts of loops');
    assert.equal(outcome.dividedAlone, 0, "a session's own number of threads");
  }
});

// WB-39
test('has half of the cores as threads, and at most four', async () => {
  const {workers} = await run('default');
  assert.equal(workers, Math.min(4, Math.ceil(availableParallelism() / 2)) - 1);
});

// WB-28, WB-37: a machine's own rounding is as good for every number of threads.
test('has the same bits with relaxed SIMD at every number of threads', async (t) => {
  const relaxed = ['relaxed', '--experimental-wasm-relaxed-simd'];
  if (!process.allowedNodeEnvironmentFlags.has('--experimental-wasm-relaxed-simd') &&
      Number(process.versions.node.split('.')[0]) > 20) relaxed.pop();
  const [alone, two] = [await run('1', ...relaxed), await run('2', ...relaxed)];
  assert.equal(alone.digest, two.digest);
  t.diagnostic(`as with fixed SIMD: ${alone.digest === (await run('1')).digest}`);
});

// WB-28, WB-39
test('checks its settings', async () => {
  env.wasm.numThreads = -1;
  await assert.rejects(InferenceSession.create(identity('float32')), /numThreads.*got -1/);
  env.wasm.numThreads = 2;
  env.wasm.simd = 'none';
  await assert.rejects(InferenceSession.create(identity('float32')), /env\.wasm\.simd: expected/);
  env.wasm.simd = true;
});

// WB-28
test('takes the module with relaxed SIMD where the engine has it', (t) => {
  let hasRelaxed = true;
  t.mock.method(WebAssembly, 'validate', () => hasRelaxed);
  const names = () =>
    [true, false, 'fixed', 'relaxed', undefined].map((simd) => {
      env.wasm.simd = simd;
      return binaryName();
    });
  const fixed = 'tenon.wasm';
  const relaxed = 'tenon.relaxed.wasm';
  assert.deepEqual(names(), [relaxed, fixed, fixed, relaxed, relaxed]);
  hasRelaxed = false;
  assert.deepEqual(names(), [fixed, fixed, fixed, fixed, fixed]);
});

// WB-29
test('names relaxed SIMD if it is asked for and not there', async (t) => {
  const original = WebAssembly.validate;
  t.mock.method(WebAssembly, 'validate', (bytes) => bytes.length < 35 && original(bytes));
  env.wasm.simd = 'relaxed';
  await assert.rejects(InferenceSession.create(identity('float32')), /needed: relaxed SIMD/);
  env.wasm.simd = 'fixed';
});

// WB-35, WB-106: what a worker has begun will never be done.
test('stops when a worker has failed, and loads a new module', async () => {
  env.wasm.numThreads = 2;
  const {loadCore} = await load('core');
  const session = await InferenceSession.create(product(256, 256, 256));
  const values = new Float32Array(256 * 256).fill(1);
  const feeds = {a: new Tensor('float32', values, [256, 256])};
  feeds.b = feeds.a;
  const expected = new Float32Array(256 * 256).fill(256);
  assert.deepEqual((await session.run(feeds)).y.data, expected);
  const core = await loadCore();
  core.call('tenon_worker_failed');
  let stopped = false;
  // Until the session's thread has to wait for the worker.
  for (const end = Date.now() + DEADLINE_MS; Date.now() < end && !stopped; ) {
    await new Promise((resolve) => setTimeout(resolve));
    await session.run(feeds).catch(({message}) => {
      assert.match(message, /the WebAssembly module stopped/);
      stopped = true;
    });
  }
  assert.ok(stopped);
  assert.equal(core.workers.count, 0);
  const next = await InferenceSession.create(product(256, 256, 256));
  assert.notEqual(await loadCore(), core);
  assert.deepEqual((await next.run(feeds)).y.data, expected);
});

test('warns once if workers cannot be started, and goes on with one thread', async () => {
  env.wasm.numThreads = 3;
  const {Workers} = await load('threads');
  const {loadCore} = await load('core');
  const core = await loadCore();
  const warnings = await printed('warn', async () => {
    // A module that is none: its worker fails.
    const workers = new Workers();
    const module = await WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
    await workers.start(core, module, 2);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    workers.terminate();
  });
  assert.equal(warnings.length, 1, warnings.join('\n'));
  assert.match(warnings[0], /a worker of the WebAssembly module ended/);
  const session = await InferenceSession.create(identity('float32'));
  assert.deepEqual([...(await session.run({x: new Tensor('float32', [3], [1])})).y.data], [3]);
});
