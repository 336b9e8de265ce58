// The package in a page.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import test from 'node:test';

import {page, show, skip} from './browser.mjs';
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
