// Runs of the WebNN provider see their arguments as they were at the call, whatever the application
// does with them afterwards. Requirements: web (WB-n).
import assert from 'node:assert/strict';
import test from 'node:test';

import {model} from './model.mjs';
import {printed} from './package.mjs';
import {arithmetic, create, floats, interrupted, Tensor, withWebNN} from './webnn_session.mjs';

const float = (name, shape = [4]) => ({name, type: 'float32', shape});
const node = (op, inputs, output) => ({op, inputs, outputs: [output], name: `makes ${output}`});
const X = [1, 2, 3, 4];
const asinh = (xs) => xs.map(Math.asinh);
const sum = (xs, ys) => xs.map((x, i) => x + ys[i]);

// y = asinh(relu(x)) + b, of which asinh is for the CPU: b is read after the device was awaited.
const late = (shape) =>
  model({
    nodes: [node('Relu', ['x'], 'h'), node('Asinh', ['h'], 'c'), node('Add', ['c', 'b'], 'y')],
    inputs: [float('x', shape), float('b', shape)],
    outputs: [float('y', shape)],
  });

// y = -(asinh(x) + asinh(b)): both feeds are read by nodes on the CPU.
const host = () =>
  model({
    nodes: [
      node('Asinh', ['x'], 'c'),
      node('Asinh', ['b'], 'd'),
      node('Add', ['c', 'd'], 's'),
      node('Neg', ['s'], 'y'),
    ],
    inputs: [float('x'), float('b')],
    outputs: [float('y')],
  });

const MODELS = {
  'one partition': {
    bytes: () => model({
      nodes: [node('Add', ['x', 'b'], 'y')],
      inputs: [float('x'), float('b')],
      outputs: [float('y')],
    }),
    expected: sum,
  },
  'sizes that a run tells': {bytes: () => late(['n']), expected: (x, b) => sum(asinh(x), b)},
  'a feed of a later partition': {bytes: late, expected: (x, b) => sum(asinh(x), b)},
  'feeds of the CPU': {bytes: host, expected: (x, b) => sum(asinh(x), asinh(b)).map((y) => -y)},
};

const CHANGES = {
  overwrites: ({data}) => data.fill(-99),
  transfers: ({data}) => structuredClone(data.buffer, {transfer: [data.buffer]}),
  'disposes of': (tensor) => tensor.dispose(),
  reshapes: ({dims}) => dims.push(7),
};

function assertClose(got, expected) {
  assert.equal(got.length, expected.length);
  const isClose = expected.every((value, i) => Math.abs(got[i] - value) < 1e-5);
  assert.ok(isClose, `${got} / ${expected}`);
}

// WB-15, WB-61: in the first run, which makes tensors, in a steady one, and in queued ones.
for (const [title, {bytes, expected}] of Object.entries(MODELS)) {
  for (const [verb, change] of Object.entries(CHANGES)) {
    test(`${title}: the application ${verb} its feeds after the call`, async (t) => {
      withWebNN(t, {stepDuration: 1});
      const session = await create(bytes());
      for (const count of [1, 1, 3]) {
        const runs = Array.from({length: count}, (_, i) => {
          const [x, b] = [X.map((value) => value + i), X.map((value) => 10 * value * (i + 1))];
          const feeds = {x: floats(x, [4]), b: floats(b, [4])};
          const pending = session.run(feeds);
          Object.values(feeds).forEach(change);
          return pending.then(({y}) => {
            assert.deepEqual(y.dims, [4]);
            assertClose([...y.data], expected(x, b));
          });
        });
        await Promise.all(runs);
      }
      await session.release();
    });
  }
}

// WB-15
test('one array carries the feeds of several runs', async (t) => {
  withWebNN(t, {stepDuration: 1});
  const session = await create(interrupted());
  const x = floats([0, 0, 0, 0]);
  const runs = [1, 2, 3, 4, 5].map((scale) => {
    x.data.set(X.map((value) => scale * value));
    return session.run({x});
  });
  x.data.fill(NaN);
  for (const [i, run] of runs.entries()) {
    assertClose([...(await run).y.data], X.map((value) => -Math.asinh((i + 1) * value)));
  }
  await session.release();
});

// WB-51, WB-58: a run that is repeated on other partitions has its first feeds.
test('a partition that cannot be built does not bring changed feeds', async (t) => {
  withWebNN(t, {faults: {build: 1}});
  const session = await create(late(['n']));
  const [x, b] = [floats(X), floats(X)];
  await printed('warn', async () => {
    const pending = session.run({x, b});
    x.data.fill(-99);
    b.data.fill(-99);
    assertClose([...(await pending).y.data], sum(asinh(X), X));
  });
  await session.release();
});

// WB-61: no copy besides that of writeTensor where a run can begin at once.
test('a steady run reads the arrays of the application within the call', async (t) => {
  withWebNN(t, {stepDuration: 1});
  const {ml} = globalThis.navigator;
  const {createContext} = ml;
  const written = [];
  t.mock.method(ml, 'createContext', async (options) => {
    const context = await createContext(options);
    const {writeTensor} = context;
    t.mock.method(context, 'writeTensor', (tensor, data) => {
      written.push(data);
      writeTensor.call(context, tensor, data);
    });
    return context;
  });
  for (const [bytes, isOnePart] of [[arithmetic([4]), true], [interrupted(), false]]) {
    const session = await create(bytes);
    const feeds = Object.fromEntries(session.inputNames.map((name) => [name, floats([...X])]));
    await session.run(feeds);
    written.length = 0;
    const runs = [session.run(feeds)];
    const own = Object.values(feeds).map(({data}) => data);
    assert.equal(written.length, own.length);
    written.forEach((data, i) => assert.equal(data, own[i]));
    if (isOnePart) {
      runs.push(session.run(feeds)); // the first one has issued all its work
      assert.equal(written[own.length], own[0]);
    }
    await Promise.all(runs);
    await session.release();
  }
});

// WB-9: the other arguments, of a run that waits for another.
test('fetches and options are those of the call', async (t) => {
  withWebNN(t, {stepDuration: 1});
  const session = await create(interrupted());
  const first = session.run({x: floats([...X])});
  const into = floats([0, 0, 0, 0]);
  const [feeds, fetches] = [{x: floats([...X])}, {y: into}];
  const options = {extra: {tenon: {run_report: '1'}}};
  const second = session.run(feeds, fetches, options);
  delete feeds.x;
  fetches.y = null;
  options.terminate = true;
  await first;
  assert.equal((await second).y, into);
  assertClose([...into.data], X.map((value) => -Math.asinh(value)));
  assert.equal(options.report.attempts, 1);
  await session.release();
});

// WB-15
test('a Buffer of Node and memory that is shared are copied as well', async (t) => {
  withWebNN(t, {stepDuration: 1});
  const bytes = model({
    nodes: [node('Add', ['x', 'b'], 'y')],
    inputs: ['x', 'b'].map((name) => ({name, type: 'uint8', shape: [4]})),
    outputs: [{name: 'y', type: 'uint8', shape: [4]}],
  });
  const session = await create(bytes);
  const shared = new Uint8Array(new SharedArrayBuffer(4));
  shared.set(X);
  const [x, b] = [new Tensor('uint8', Buffer.from(X)), new Tensor('uint8', shared)];
  for (let run = 0; run < 2; ++run) {
    x.data.set(X);
    b.data.set(X);
    const pending = session.run({x, b});
    x.data.fill(0);
    b.data.fill(0);
    assert.deepEqual([...(await pending).y.data], X.map((value) => 2 * value));
  }
  await session.release();
});

// WB-9
test('arrays that were transferred before the call are refused by name', async (t) => {
  withWebNN(t);
  const session = await create(arithmetic([4]));
  const feeds = () => ({a: floats([...X]), b: floats([...X]), c: floats([...X])});
  const gone = floats([...X]);
  structuredClone(gone.data.buffer, {transfer: [gone.data.buffer]});
  await assert.rejects(session.run({...feeds(), b: gone}), {
    name: 'TypeError',
    message: /^feeds: input 'b': dims \[4\] need 4 elements, got 0: its array was transferred/,
  });
  await assert.rejects(session.run(feeds(), {y: gone}), /^TypeError: fetches: output 'y': dims/);
  const {y} = await session.run(feeds());
  assertClose([...y.data], X.map((value) => 2 * value * value));
  await session.release();
});
