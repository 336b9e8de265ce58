// The WebNN reference: the order of effects, loss of contexts, and emulated devices.
import assert from 'node:assert/strict';
import test from 'node:test';

import {reference, run} from './webnn.mjs';

const {createML, MLGraphBuilder} = reference;
const PAIR = {dataType: 'float32', shape: [2]};
const LOST = {name: 'InvalidStateError'};

// A context, a graph y = 2 * x, and tensors for it.
async function doubling(device) {
  const ml = createML(device);
  const context = await ml.createContext();
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', PAIR);
  const graph = await builder.build({y: builder.add(x, x)});
  const tensor = () => context.createTensor({...PAIR, readable: true, writable: true});
  return {ml, context, graph, x: await tensor(), y: await tensor(), tensor};
}

async function read(context, tensor) {
  return Array.from(new Float32Array(await context.readTensor(tensor)));
}

// Runs `body` with timers that only note how long they were to take; the notes.
async function durations(body) {
  const {setTimeout} = globalThis;
  const noted = [];
  globalThis.setTimeout = (callback, duration) => {
    noted.push(duration);
    return setImmediate(callback);
  };
  try {
    await body();
  } finally {
    globalThis.setTimeout = setTimeout;
  }
  return noted;
}

// WB-91
test('has zeros in new tensors', async () => {
  const {context, x} = await doubling();
  assert.deepEqual(await read(context, x), [0, 0]);
});

// WB-91
test('copies what is written, when it is written', async () => {
  const {context, x} = await doubling();
  const data = Float32Array.of(1, 2);
  context.writeTensor(x, data);
  data.fill(9);
  assert.deepEqual(await read(context, x), [1, 2]);
});

for (const device of [{}, {stepDuration: 1}]) {
  // WB-91
  test(`takes effect in the order of calls with ${JSON.stringify(device)}`, async () => {
    const {context, graph, x, y} = await doubling(device);
    context.writeTensor(x, Float32Array.of(1, 2));
    context.dispatch(graph, {x}, {y});
    const first = read(context, y);
    context.writeTensor(x, Float32Array.of(3, 4));
    const written = read(context, x);
    const kept = read(context, y);
    context.dispatch(graph, {x: y}, {y: x}); // x = 2 * y
    context.dispatch(graph, {x}, {y}); // y = 2 * x
    context.writeTensor(x, Float32Array.of(5, 6));
    const last = read(context, y);
    assert.deepEqual(await Promise.all([first, written, kept, last]), [
      [2, 4],
      [3, 4],
      [2, 4],
      [8, 16],
    ]);
    assert.deepEqual(await read(context, x), [5, 6]);
  });

  // WB-91
  test(`finishes work with what is destroyed after it, with ${JSON.stringify(device)}`, async () => {
    const {context, graph, x, y} = await doubling(device);
    context.writeTensor(x, Float32Array.of(1, 2));
    context.dispatch(graph, {x}, {y});
    x.destroy();
    x.destroy();
    graph.destroy();
    graph.destroy();
    assert.deepEqual(await read(context, y), [2, 4]);
  });

  // WB-91
  test(`rejects pending reads of a destroyed tensor, with ${JSON.stringify(device)}`, async () => {
    const {context, x} = await doubling(device);
    const output = new Float32Array(2).fill(7);
    const reads = [context.readTensor(x), context.readTensor(x, output)];
    x.destroy();
    for (const pending of reads) await assert.rejects(pending, {name: 'InvalidStateError'});
    assert.deepEqual(Array.from(output), [7, 7]);
  });
}

test('reads without sharing memory', async () => {
  const {context, x} = await doubling();
  const first = new Float32Array(await context.readTensor(x));
  context.writeTensor(x, Float32Array.of(1, 2));
  assert.deepEqual(Array.from(new Float32Array(await context.readTensor(x))), [1, 2]);
  assert.deepEqual(Array.from(first), [0, 0]);
});

test('reads into shared memory, and rejects a buffer that is detached meanwhile', async () => {
  const {context, x} = await doubling();
  context.writeTensor(x, new Float32Array(new SharedArrayBuffer(8)).fill(3));
  const shared = new SharedArrayBuffer(8);
  await context.readTensor(x, shared);
  assert.deepEqual(Array.from(new Float32Array(shared)), [3, 3]);
  const buffer = new ArrayBuffer(8);
  const pending = context.readTensor(x, buffer);
  structuredClone(buffer, {transfer: [buffer]});
  await assert.rejects(pending, TypeError);
});

test('keeps constants of a graph whose tensor is destroyed after build', async () => {
  const context = await createML().createContext();
  const weights = await context.createConstantTensor(PAIR, Float32Array.of(3, 4));
  const builder = new MLGraphBuilder(context);
  const pending = builder.build({y: builder.neg(builder.constant(weights))});
  weights.destroy();
  const y = await context.createTensor({...PAIR, readable: true});
  context.dispatch(await pending, {}, {y});
  assert.deepEqual(await read(context, y), [-3, -4]);
});

// WB-91
test('rejects all that is pending when the context is lost, and settles lost', async () => {
  const {context, graph, x, y} = await doubling();
  const builder = new MLGraphBuilder(context);
  const late = new MLGraphBuilder(context);
  const outputs = {y: builder.neg(builder.constant('float32', 1))};
  const pending = [
    context.createTensor(PAIR),
    context.createConstantTensor(PAIR, new Float32Array(2)),
    context.readTensor(x),
    context.readTensor(x, new Float32Array(2)),
    builder.build(outputs),
  ];
  context.dispatch(graph, {x}, {y});
  context.destroy();
  context.destroy();
  const {message} = await context.lost;
  assert.match(message, /destroy\(\)/);
  for (const promise of pending) await assert.rejects(promise, LOST);
  await assert.rejects(context.createTensor(PAIR), LOST);
  await assert.rejects(context.createConstantTensor(PAIR, new Float32Array(2)), LOST);
  await assert.rejects(context.readTensor(x), TypeError);
  assert.throws(() => context.writeTensor(x, new Float32Array(2)), TypeError);
  assert.throws(() => context.dispatch(graph, {x}, {y}), LOST);
  assert.throws(() => new MLGraphBuilder(context), LOST);
  assert.throws(() => late.input('x', PAIR), LOST);
  await assert.rejects(late.build({}), LOST);
});

test('is lost while a step takes its time', async () => {
  const {context, x} = await doubling({stepDuration: 5});
  const pending = context.readTensor(x);
  await new Promise(setImmediate);
  context.destroy();
  await assert.rejects(pending, LOST);

  const other = await doubling({stepDuration: 5});
  other.context.writeTensor(other.x, new Float32Array(2));
  await new Promise(setImmediate);
  other.x.destroy();
  other.context.destroy();
  // The current step finds its tensor released, and must not run.
  await new Promise((resolve) => setTimeout(resolve, 20));
});

// WB-94
test('narrows types and ranks of all operands, and of single ones', async () => {
  const limits = {
    preferredInputLayout: 'nhwc',
    maxTensorByteLength: 64,
    dataTypes: ['float32', 'int32', 'uint8'],
    rankRange: {min: 1, max: 4},
    output: {dataTypes: ['float32']},
    operators: {mul: null, add: {b: {dataTypes: ['float32'], rankRange: {max: 1}}}},
  };
  const context = await createML({limits}).createContext();
  const {preferredInputLayout, maxTensorByteLength, ...rest} = context.opSupportLimits();
  assert.deepEqual([preferredInputLayout, maxTensorByteLength], ['nhwc', 64]);
  const rankRange = {min: 1, max: 4};
  assert.deepEqual(rest.input, {dataTypes: ['float32', 'int32', 'uint8'], rankRange});
  assert.deepEqual(rest.output, {dataTypes: ['float32'], rankRange});
  assert.deepEqual(rest.mul.a, {dataTypes: [], rankRange});
  assert.deepEqual(rest.add.a, {dataTypes: ['float32', 'int32', 'uint8'], rankRange});
  assert.deepEqual(rest.add.b, {dataTypes: ['float32'], rankRange: {min: 1, max: 1}});
  assert.deepEqual(rest.matmul.a, {dataTypes: ['float32'], rankRange: {min: 2, max: 4}});

  await assert.rejects(context.createTensor({dataType: 'float16', shape: [2]}), TypeError);
  await assert.rejects(context.createTensor({dataType: 'float32', shape: []}), TypeError);
  await assert.rejects(context.createTensor({dataType: 'float32', shape: [17]}), TypeError);
  const builder = new MLGraphBuilder(context);
  const floats = builder.input('floats', {dataType: 'float32', shape: [2, 2]});
  const vector = builder.input('vector', {dataType: 'float32', shape: [2]});
  const integers = builder.input('integers', {dataType: 'int32', shape: [2]});
  assert.throws(() => builder.input('x', {dataType: 'int64', shape: [1]}), TypeError);
  assert.throws(() => builder.constant('float32', 1), TypeError); // of rank 0
  assert.throws(() => builder.mul(floats, vector), TypeError);
  assert.throws(() => builder.add(floats, floats), TypeError);
  assert.throws(() => builder.add(integers, integers), TypeError);
  assert.throws(() => builder.reduceSum(vector), TypeError); // would be of rank 0
  assert.throws(() => builder.cast(vector, 'float16'), TypeError);
  assert.deepEqual(builder.add(floats, vector).shape, [2, 2]);
  await assert.rejects(builder.build({y: builder.abs(integers)}), TypeError);
  assert.ok(await builder.build({y: builder.add(floats, vector)}));
});

// WB-94
test('takes time for each step, and more for other tensors', async () => {
  const {context, graph, x, y, tensor} = await doubling({rebindDuration: 40});
  const other = await tensor();
  assert.deepEqual(
    await durations(async () => {
      for (let i = 0; i < 3; ++i) context.dispatch(graph, {x}, {y});
      await context.readTensor(y);
    }),
    [],
  );
  const noted = await durations(async () => {
    context.dispatch(graph, {x: other}, {y}); // another one
    context.dispatch(graph, {x: other}, {y});
    context.dispatch(graph, {x}, {y}); // and again
    await context.readTensor(y);
  });
  assert.deepEqual(noted, [40, 40]);
  const slow = await doubling({stepDuration: 5, rebindDuration: 40});
  const all = await durations(async () => {
    slow.context.writeTensor(slow.x, new Float32Array(2));
    slow.context.dispatch(slow.graph, {x: slow.x}, {y: slow.y});
    slow.context.dispatch(slow.graph, {x: slow.y}, {y: slow.x});
    await slow.context.readTensor(slow.x);
  });
  assert.deepEqual(all, [5, 5, 45, 5]);
});

// WB-94
test('fails the calls that it is told to fail', async () => {
  const {ml, context, graph, x, y, tensor} = await doubling({
    faults: {createTensor: [3, 5], readTensor: 2, writeTensor: 1, build: 2},
  });
  await assert.rejects(tensor(), {name: 'UnknownError'}); // the third
  assert.ok(await tensor());
  const second = await ml.createContext();
  await assert.rejects(second.createTensor(PAIR), {name: 'UnknownError'}); // the fifth of the device
  assert.ok(await second.createTensor(PAIR));
  assert.throws(() => context.writeTensor(x, new Float32Array(2)), {name: 'UnknownError'});
  context.writeTensor(x, Float32Array.of(1, 2));
  context.dispatch(graph, {x}, {y});
  assert.deepEqual(await read(context, y), [2, 4]);
  await assert.rejects(context.readTensor(y), {name: 'UnknownError'});
  assert.deepEqual(await read(context, y), [2, 4]);
  const builder = new MLGraphBuilder(context);
  const output = builder.neg(builder.input('x', PAIR));
  await assert.rejects(builder.build({y: output}), {name: 'OperationError'});
  await assert.rejects(builder.build({y: output}), LOST); // it has built
  const again = new MLGraphBuilder(context);
  assert.ok(await again.build({y: again.neg(again.input('x', PAIR))}));
});

// WB-94
test('loses the context at a dispatch', async () => {
  const {ml, context, graph, x, y} = await doubling({faults: {loseAtDispatch: 2}});
  context.dispatch(graph, {x}, {y});
  assert.deepEqual(await read(context, y), [0, 0]);
  context.dispatch(graph, {x}, {y});
  const pending = context.readTensor(y);
  await assert.rejects(pending, LOST);
  assert.match((await context.lost).message, /lost/);
  const next = await ml.createContext();
  const input = {dataType: 'float32', shape: [1], data: [2]};
  const result = await run({x: input}, (builder, {x}) => ({y: builder.neg(x)}), next);
  assert.deepEqual(result.y.data, [-2]);
});

// WB-92
test('has no context without a device', async () => {
  const ml = createML({isAbsent: true});
  await assert.rejects(ml.createContext(), {name: 'NotSupportedError'});
});
