// Traces on the console, and reports of runs.
import assert from 'node:assert/strict';
import test from 'node:test';

import {sumAndProduct} from './model.mjs';
import {load, printed} from './package.mjs';

const {InferenceSession, Tensor} = await load();
const pair = () => ({a: new Tensor('float32', [1, 2]), b: new Tensor('float32', [3, 4])});

// PR-1, PR-17
test('prints a trace with an event per line when profiling ends', async () => {
  const session = await InferenceSession.create(sumAndProduct(), {
    enableProfiling: true,
    profileFilePrefix: 'a prefix',
    graphOptimizationLevel: 'disabled',
  });
  assert.deepEqual(await printed('log', () => session.run(pair())), []);
  const lines = await printed('log', () => session.endProfiling());
  for (const line of lines) assert.match(line, /^\{"cat"/);
  const events = lines.map((line) => JSON.parse(line));
  const keys = ['cat', 'pid', 'tid', 'dur', 'ts', 'ph', 'name', 'args'];
  assert.deepEqual(Object.keys(events[0]), keys);
  const names = events.map(({name}) => name);
  for (const name of ['session_initialization', 'model_run', 'adds "both"_kernel_time']) {
    assert.equal(names.filter((each) => each === name).length, 1, name);
  }
  // Work after the end is in no trace.
  assert.deepEqual(
    await printed('log', async () => {
      await session.run(pair());
      session.endProfiling();
      await session.release();
    }),
    [],
  );
});

test('prints the trace of a session that is released without an end', async () => {
  const session = await InferenceSession.create(sumAndProduct(), {enableProfiling: true});
  const lines = await printed('log', () => session.release());
  assert.ok(lines.some((line) => JSON.parse(line).name === 'session_teardown'));
});

// PR-1
test('prints nothing of a session without profiling', async () => {
  for (const options of [{}, {enableProfiling: false, profileFilePrefix: 'unused'}]) {
    const lines = await printed('log', async () => {
      const session = await InferenceSession.create(sumAndProduct(), options);
      await session.run(pair());
      session.endProfiling();
      await session.release();
    });
    assert.deepEqual(lines, []);
  }
});

test('says that a trace starts with its session', async () => {
  const session = await InferenceSession.create(sumAndProduct());
  const warnings = await printed('warn', () => session.startProfiling());
  assert.equal(warnings.length, 1);
  assert.match(warnings[0], /enableProfiling/);
});

// PR-51
test('reports a run whose options ask for it', async () => {
  const session = await InferenceSession.create(sumAndProduct());
  for (const extra of [{'tenon.run_report': '1'}, {tenon: {run_report: '1'}}]) {
    const options = {extra};
    await session.run(pair(), options);
    const {report} = options;
    assert.equal(report.nodes, 2);
    assert.deepEqual(
      report.providers.map(({name, nodes}) => [name, nodes]),
      [['CPUExecutionProvider', 2]],
    );
    assert.ok(report.run_id > 0 && report.duration_us >= 0 && report.fallback === false);
    for (const place of report.memory) {
      assert.ok(place.peak_bytes <= place.static_bytes + place.dynamic_bytes);
    }
    const {run_id} = report;
    await session.run(pair(), ['sum'], options);
    assert.ok(options.report.run_id > run_id);
  }
});

// WB-17
test('shows the tag of a run in the trace', async () => {
  const session = await InferenceSession.create(sumAndProduct(), {enableProfiling: true});
  await session.run(pair(), {tag: 'the tag', logSeverityLevel: 4, logVerbosityLevel: 1});
  await assert.rejects(session.run(pair(), {terminate: true}), /terminate/);
  const lines = await printed('log', () => session.endProfiling());
  const runs = lines.map((line) => JSON.parse(line)).filter(({name}) => name === 'model_run');
  assert.equal(runs[0].args.run_tag, 'the tag');
  assert.notEqual(runs[1].args.status, 'ok');
});

// PR-51
test('reports nothing that was not asked for', async () => {
  const session = await InferenceSession.create(sumAndProduct());
  for (const options of [{}, {tag: 'a run'}, {extra: {'tenon.run_report': '0'}}]) {
    await session.run(pair(), options);
    assert.equal('report' in options, false);
  }
});
