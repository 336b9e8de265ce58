// The package in a page.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import test from 'node:test';

import {page, show, skip} from './browser.mjs';
import {product} from './model.mjs';
import {DIGITS} from './package.mjs';

const DEADLINE_MS = 120_000;
const PAGE = page(`
  const {env, InferenceSession, Tensor} = await import('/dist/src/index.js');
  const session = await InferenceSession.create('/digits.onnx', {enableProfiling: true});
  const image = new Tensor('float32', new Float32Array(64), [1, 1, 8, 8]);
  const options = {extra: {tenon: {run_report: '1'}}};
  const {probabilities} = await session.run({image}, options);
  outcome.sum = probabilities.data.reduce((sum, value) => sum + value, 0);
  outcome.report = options.report;
  session.endProfiling();
  await session.release();
  // With the reference instead of the browser's WebNN.
  const {install} = await import('/dist/webnn-reference/index.js');
  const uninstall = install();
  const onDevice = await InferenceSession.create('/digits.onnx', {executionProviders: ['webnn']});
  const again = await onDevice.run({image});
  outcome.difference = Math.max(
    ...again.probabilities.data.map((value, i) => Math.abs(value - probabilities.data[i])),
  );
  outcome.dispatches = env.tenon.stats().total.dispatches;
  await onDevice.release();
  uninstall();
  outcome.missing = await InferenceSession.create('/none.onnx').catch(({message}) => message);
`);

// With more threads than the default, and a product that is large enough for them.
const THREADS_PAGE = page(`
  const {env, InferenceSession, Tensor} = await import('/dist/src/index.js');
  const {loadCore} = await import('/dist/src/core.js');
  outcome.isIsolated = crossOriginIsolated;
  env.wasm.numThreads = 3;
  const size = 256;
  const session = await InferenceSession.create('/product.onnx');
  const values = Float32Array.from({length: size * size}, (_, i) => (i % 7) - 3);
  const x = new Tensor('float32', values, [size, size]);
  for (let run = 0; run < 50; ++run) {
    const {y} = await session.run({a: x, b: x});
    outcome.sum = y.data.reduce((sum, value) => sum + value, 0);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  outcome.workers = (await loadCore()).workers.count;
`);

const ISOLATION = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
};

// PR-17, PR-51, WB-101, WB-102
test('runs in a page, whose console has the trace', {skip, timeout: DEADLINE_MS}, async () => {
  const {result, lines} = await show({'/page.html': PAGE, '/digits.onnx': readFileSync(DIGITS)});
  assert.ok(Math.abs(result.sum - 1) < 1e-5);
  assert.ok(result.report.nodes > 0);
  assert.ok(result.difference < 1e-5);
  assert.equal(result.dispatches, 1);
  assert.match(result.missing, /404/);
  const trace = lines.filter((line) => line.startsWith('{"cat"'));
  const events = trace.map((line) => JSON.parse(line));
  assert.ok(events.some(({name}) => name === 'model_run'));
  assert.ok(events.some(({name}) => name.endsWith('_kernel_time')));
});

// WB-28, WB-39, WB-42, WB-102: one file for pages with threads and without. The page's own thread,
// which must not sleep, runs the session.
for (const [name, headers] of [['isolated', ISOLATION], ['not isolated', {}]]) {
  test(`runs in a page that is ${name}`, {skip, timeout: DEADLINE_MS}, async () => {
    const files = {'/page.html': THREADS_PAGE, '/product.onnx': product(256, 256, 256)};
    const {result, lines} = await show(files, headers);
    const isIsolated = headers === ISOLATION;
    assert.equal(result.isIsolated, isIsolated);
    assert.equal(result.workers, isIsolated ? 2 : 0);
    const size = 256;
    const values = Array.from({length: size * size}, (_, i) => (i % 7) - 3);
    const sums = (at) => Array.from({length: size}, (_, k) =>
      Array.from({length: size}, (_, i) => values[at(i, k)]).reduce((sum, x) => sum + x));
    const columns = sums((i, k) => i * size + k); // of A
    const rows = sums((j, k) => k * size + j); // of B
    assert.equal(result.sum, columns.reduce((sum, x, k) => sum + x * rows[k], 0));
    const warnings = lines.filter((line) => line.includes('cross-origin'));
    assert.equal(warnings.length, isIsolated ? 0 : 1);
  });
}

const POLICY_PAGE = (entry) => page(`
  const {env, InferenceSession, Tensor} = await import('${entry}');
  env.wasm.numThreads = 3;
  const size = 256;
  const session = await InferenceSession.create('/product.onnx', {enableProfiling: true});
  const x = new Tensor('float32', new Float32Array(size * size).fill(1), [size, size]);
  for (let run = 0; run < 100; ++run) {
    const {y} = await session.run({a: x, b: x});
    outcome.isRight = y.data.every((value) => value === size);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  session.endProfiling();
`);

// What a page's policy says of workers, and how many threads take parts of loops then.
const POLICIES = [
  ['worker-src blob:', true],
  ["worker-src 'self'", true],
  ["worker-src 'none'", false],
];

for (const [policy, hasThreads] of POLICIES) {
  for (const entry of ['/dist/ort.min.mjs', '/dist/src/index.js']) {
    // WB-43
    test(`${entry}: threads under ${policy}`, {skip, timeout: DEADLINE_MS}, async () => {
      const files = {'/page.html': POLICY_PAGE(entry), '/product.onnx': product(256, 256, 256)};
      const headers = {...ISOLATION, 'content-security-policy': policy};
      const {result, lines} = await show(files, headers);
      assert.ok(result.isRight);
      const helped = lines.filter((line) => /"num_run":[1-9]/.test(line)).length;
      assert.equal(helped > 0, hasThreads, `${helped} loops with help`);
      const warnings = lines.filter((line) => line.includes('its thread is missing'));
      assert.equal(warnings.length, hasThreads ? 0 : 1, warnings.join('\n'));
    });
  }
}
