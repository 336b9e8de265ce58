// The WebNN provider: where it is left out, how data moves, tensors on the device, and whole models
// against the CPU provider. Requirements: web (WB-n).
import assert from 'node:assert/strict';
import {existsSync, readdirSync, readFileSync} from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import {fileURLToPath} from 'node:url';

import {model} from './model.mjs';
import {DIGITS, load, printed} from './package.mjs';
import {
  arithmetic,
  create,
  env,
  floats,
  InferenceSession,
  interrupted,
  loadCore,
  reference,
  Tensor,
  withWebNN,
} from './webnn_session.mjs';

const {Transfer} = await load('../webnn/transfer');
const {Device} = await load('../webnn/device');

const SIX = [1, 2, 3, 4, 5, 6];
const six = (scale = 1) => floats(SIX.map((value) => value * scale), [2, 3]);
const feeds = () => ({a: six(1), b: six(2), c: six(3)});
const Y = SIX.map((value) => 9 * value * value);

// WB-5, WB-47
test('is left out where WebNN is not there', async (t) => {
  let session;
  const warned = async (provider) =>
    printed('warn', async () => {
      session = await create(arithmetic(), {}, provider);
      assert.deepEqual([...(await session.run(feeds())).y.data], Y);
      await session.release();
    });
  assert.deepEqual(await warned('webnn'), [
    "execution provider 'webnn' is left out: WebNN is not there: MLGraphBuilder is missing",
  ]);
  const context = await reference.createML().createContext();
  assert.equal((await warned({name: 'webnn', context})).length, 1);
  // Values for interfaces that are not installed can be passed in.
  const graphBuilder = reference.MLGraphBuilder;
  assert.deepEqual(await warned({name: 'webnn', context, graphBuilder}), []);
  assert.deepEqual(await warned({name: 'webnn', context: {}, graphBuilder}), [
    "execution provider 'webnn' is left out: context: expected an MLContext",
  ]);
  withWebNN(t, {isAbsent: true});
  assert.deepEqual(await warned('webnn'), [
    "execution provider 'webnn' is left out: there is no device",
  ]);
  await printed('warn', () =>
    assert.rejects(
      InferenceSession.create(arithmetic(), {executionProviders: ['webnn']}),
      /no execution provider works: 'webnn': there is no device/,
    ),
  );
});

// WB-4
test('is not chosen unasked', async (t) => {
  const webnn = withWebNN(t);
  const session = await InferenceSession.create(arithmetic());
  await session.run(feeds());
  assert.equal(webnn.contexts, 0);
  await session.release();
});

// The calls on the contexts of a test, in order, and the ends of reads.
function logCalls(t) {
  const log = [];
  const {ml} = globalThis.navigator;
  const {createContext} = ml;
  t.mock.method(ml, 'createContext', async (options) => {
    const context = await createContext(options);
    for (const name of ['writeTensor', 'readTensor', 'dispatch']) {
      const original = context[name].bind(context);
      t.mock.method(context, name, (...args) => {
        log.push({name, data: args[1]});
        const result = original(...args);
        if (name === 'readTensor') void result.then(() => log.push({name: 'has read'}));
        return result;
      });
    }
    return context;
  });
  return log;
}

// WB-10, WB-15, WB-61, WB-62, WB-64
test('moves data from and to the arrays of the application', async (t) => {
  withWebNN(t, {stepDuration: 1});
  const log = logCalls(t);
  const session = await create(arithmetic());
  const {a, b, c} = feeds();
  const into = six(0);
  const {data} = into;
  for (let run = 0; run < 3; ++run) {
    log.length = 0;
    const {y, z} = await session.run({a, b, c}, {y: into, z: null});
    assert.equal(y, into);
    assert.equal(y.data, data);
    assert.deepEqual([...data], Y);
    assert.deepEqual(
      log.map(({name}) => name),
      [
        ...['writeTensor', 'writeTensor', 'writeTensor', 'dispatch'],
        ...['readTensor', 'readTensor', 'has read', 'has read'],
      ],
    );
    assert.deepEqual(log.slice(0, 3).map((call) => call.data), [a.data, b.data, c.data]);
    // The first run waits for new tensors, and therefore has copies.
    if (run > 0) assert.equal(log[0].data, a.data);
    assert.equal(log[4].data, data);
    assert.equal(log[5].data, z.data);
  }
  assert.deepEqual([...a.data], SIX);
  // Run after run is issued before the first has its results.
  log.length = 0;
  await Promise.all([1, 2, 3].map(() => session.run({a, b, c}, ['y'])));
  const names = log.map(({name}) => name);
  assert.ok(names.lastIndexOf('dispatch') < names.indexOf('has read'), names.join());
  await session.release();
});

// WB-34, WB-48, WB-53
test('asks once for limits and programs, and has constants released', async (t) => {
  withWebNN(t);
  const {ml} = globalThis.navigator;
  const {createContext} = ml;
  let questions = 0;
  t.mock.method(ml, 'createContext', async (options) => {
    const context = await createContext(options);
    const original = context.opSupportLimits.bind(context);
    t.mock.method(context, 'opSupportLimits', () => {
      ++questions;
      return original();
    });
    return context;
  });
  const {mock} = t.mock.method(await loadCore(), 'call');
  const count = (name) => mock.calls.filter(({arguments: [called]}) => called === name).length;
  const [first, second] = await Promise.all([create(arithmetic()), create(interrupted())]);
  assert.equal(questions, 1);
  assert.equal(count('tenon_session_program'), 3);
  assert.equal(count('tenon_session_release_constants'), 2);
  for (let run = 0; run < 3; ++run) await first.run(feeds());
  await second.run({x: floats([1, 2, 3, 4])});
  assert.equal(count('tenon_session_program'), 3);
  assert.equal(count('tenon_session_next'), 3 * 2 + 3);
  await Promise.all([first.release(), second.release()]);
});

// WB-109
test('does not pay for bindings', async (t) => {
  const rebindDuration = 400;
  const webnn = withWebNN(t, {rebindDuration});
  const session = await create(arithmetic());
  const start = performance.now();
  for (let run = 0; run < 20; ++run) await session.run(feeds());
  assert.equal(webnn.dispatches.length, 20);
  assert.ok(performance.now() - start < 19 * rebindDuration);
  assert.equal(webnn.rebinds, 0);
  await session.release();
});

// WB-30, WB-63
test('finds its memory again that moved while the device was waited for', async (t) => {
  withWebNN(t, {stepDuration: 10});
  const core = await loadCore();
  const session = await create(interrupted());
  for (let run = 0; run < 2; ++run) {
    const pending = session.run({x: floats([1, 2, 3, 4])});
    await new Promise((resolve) => setTimeout(resolve, 12));
    const before = core.memory.buffer.byteLength;
    core.free(core.allocate('a test', before + (1 << 20)));
    assert.ok(core.memory.buffer.byteLength > before);
    const {y} = await pending;
    assert.equal(y.data[0], Math.fround(-Math.asinh(1)));
  }
  await session.release();
});

// WB-63
test('copies for a platform that refuses shared memory', async (t) => {
  const context = await reference.createML().createContext();
  const refused = [];
  for (const name of ['writeTensor', 'readTensor']) {
    const original = context[name].bind(context);
    t.mock.method(context, name, (tensor, data) => {
      if (!(data?.buffer instanceof SharedArrayBuffer)) return original(tensor, data);
      refused.push(name);
      const error = new TypeError('shared memory');
      if (name === 'readTensor') return Promise.reject(error);
      throw error;
    });
  }
  const device = new Device(context, reference.MLGraphBuilder);
  const transfer = new Transfer(device, {add: () => undefined});
  const shape = [4];
  const tensor = await context.createTensor({
    dataType: 'float32', shape, readable: true, writable: true,
  });
  const view = new Uint8Array(new SharedArrayBuffer(16));
  new Float32Array(view.buffer).set([1, 2, 3, 4]);
  for (let time = 0; time < 2; ++time) transfer.write(tensor, view);
  const into = new Uint8Array(new SharedArrayBuffer(16));
  for (let time = 0; time < 2; ++time) await transfer.readToModule(tensor, () => into);
  assert.deepEqual([...into], [...view]);
  assert.deepEqual(refused, ['writeTensor']); // once for all
  device.takesSharedViews = undefined;
  await transfer.readToModule(tensor, () => into.fill(0));
  assert.deepEqual([...into], [...view]);
  assert.deepEqual(refused, ['writeTensor', 'readTensor']);
  assert.equal(device.takesSharedViews, false);
});

// WB-21, WB-22, WB-23, WB-87
test('has tensors whose data is in an MLTensor', async () => {
  const mlTensor = {dataType: 'float32', shape: [2], destroy() {}};
  let disposals = 0;
  let finish;
  const make = (options) =>
    Tensor.fromMLTensor(mlTensor, {
      dims: [2],
      download: () => new Promise((resolve) => (finish = resolve)),
      dispose: () => ++disposals,
      ...options,
    });
  const tensor = make();
  assert.equal(tensor.type, 'float32');
  assert.equal(tensor.size, 2);
  assert.equal(tensor.location, 'ml-tensor');
  assert.equal(tensor.mlTensor, mlTensor);
  assert.throws(() => tensor.data, /at location 'ml-tensor': call getData/);
  assert.throws(() => tensor.gpuBuffer, /'ml-tensor'/);
  assert.throws(() => tensor.texture, /'ml-tensor'/);
  assert.throws(() => tensor.reshape([1, 2]), /owns memory of a device/);
  const download = tensor.getData(true);
  await assert.rejects(tensor.getData(), /being downloaded/);
  assert.throws(() => tensor.dispose(), /being downloaded/);
  finish(Float32Array.of(1, 2));
  assert.deepEqual([...(await download)], [1, 2]);
  assert.equal(disposals, 1);
  assert.equal(tensor.location, 'cpu');
  assert.equal(await tensor.getData(), tensor.data);
  assert.throws(() => tensor.mlTensor, /'cpu'/);
  tensor.dispose();
  assert.equal(disposals, 1);
  const kept = make();
  const later = kept.getData();
  finish(Float32Array.of(3, 4));
  await later;
  assert.equal(disposals, 1);
  kept.dispose();
  kept.dispose();
  assert.equal(disposals, 2);
  const bare = make({download: undefined, dispose: undefined});
  await assert.rejects(bare.getData(), /made without download/);
  assert.equal(bare.reshape([2, 1]).mlTensor, mlTensor);
  assert.throws(() => bare.reshape([3]), RangeError);
  for (const dataType of [
    ...['float32', 'float16', 'int8', 'uint8', 'int32', 'uint32', 'int64', 'uint64'],
    ...['bool', 'int4', 'uint4'],
  ]) {
    assert.equal(make({dataType}).type, dataType);
  }
  for (const dataType of ['float64', 'int16', 'string']) {
    assert.throws(() => make({dataType}), TypeError);
  }
  assert.throws(() => make({dims: 2}), TypeError);
  assert.throws(() => make({dims: [-1]}), RangeError);
  assert.throws(() => Tensor.fromMLTensor(null, {dims: []}), TypeError);
});

// WB-85, WB-86
test('has outputs and feeds on the device of nodes on the CPU', async (t) => {
  const webnn = withWebNN(t);
  const context = await globalThis.navigator.ml.createContext();
  const float = (name) => ({name, type: 'float32', shape: ['n']});
  const onHost = await create(
    model({
      nodes: [{op: 'Asinh', inputs: ['x'], outputs: ['y']}],
      inputs: [float('x')],
      outputs: [float('y')],
    }),
    {preferredOutputLocation: 'ml-tensor'},
    {name: 'webnn', context},
  );
  const both = {readable: true, writable: true};
  const tensor = await context.createTensor({dataType: 'float32', shape: [2], ...both});
  context.writeTensor(tensor, Float32Array.of(1, 2));
  const x = Tensor.fromMLTensor(tensor, {dims: [2]});
  const expected = [1, 2].map((value) => Math.fround(Math.asinh(value)));
  const live = webnn.live;
  for (let run = 0; run < 5; ++run) {
    const {y} = await onHost.run({x});
    assert.equal(y.location, 'ml-tensor');
    assert.deepEqual([...(await y.getData(true))], expected);
    assert.equal(webnn.live, live + 1);
  }
  // Into a tensor of the application.
  const into = await context.createTensor({dataType: 'float32', shape: [2], ...both});
  const y = Tensor.fromMLTensor(into, {dims: [2]});
  assert.equal((await onHost.run({x}, {y})).y, y);
  assert.deepEqual([...new Float32Array(await context.readTensor(into))], expected);
  await onHost.release();
  assert.equal(webnn.live, 2);
});

// WB-16, WB-89
test('refuses places where it has no outputs', async (t) => {
  withWebNN(t);
  for (const preferredOutputLocation of ['gpu-buffer', {y: 'gpu-buffer'}, 'attic']) {
    await assert.rejects(
      create(arithmetic(), {preferredOutputLocation}),
      /preferredOutputLocation: expected 'cpu' or 'ml-tensor' .* got '(gpu-buffer|attic)'/,
    );
  }
  await assert.rejects(
    InferenceSession.create(arithmetic(), {preferredOutputLocation: 'ml-tensor'}),
    /preferredOutputLocation: expected 'cpu' .* got 'ml-tensor'/,
  );
});

// Deterministic values between -1 and 1.
function noise(size) {
  let state = 7;
  return Float32Array.from({length: size}, () => {
    state = (state * 16807) % 2147483647;
    return (state / 2147483647) * 2 - 1;
  });
}

function feedsFor({inputMetadata}) {
  return Object.fromEntries(
    inputMetadata.map(({name, type, shape}) => {
      const dims = shape.map((dim) => (typeof dim === 'number' ? dim : 1));
      const data = noise(dims.reduce((size, dim) => size * dim, 1));
      return [name, new Tensor(type, type === 'float32' ? data : Array.from(data, Math.abs), dims)];
    }),
  );
}

// Runs a model with the provider and without; returns the number of dispatches of a run.
async function compare(webnn, bytes, what, options = {}) {
  const onCPU = await InferenceSession.create(bytes, {...options, executionProviders: ['wasm']});
  const session = await create(bytes, options);
  const inputs = feedsFor(onCPU);
  const expected = await onCPU.run(inputs);
  const before = webnn.dispatches.length;
  let dispatches;
  for (let run = 0; run < 3; ++run) {
    const got = await session.run(inputs);
    dispatches ??= webnn.dispatches.length - before;
    for (const [name, {data, dims}] of Object.entries(expected)) {
      assert.deepEqual(got[name].dims, dims, `${what} ${name}`);
      data.forEach((value, i) => {
        const difference = Math.abs(got[name].data[i] - value);
        const least = 1e-4 * Math.max(1, Math.abs(value));
        assert.ok(difference <= least, `${what} ${name}[${i}]: ${value}, got ${got[name].data[i]}`);
      });
    }
  }
  const {created, destroyed, rebinds} = env.tenon.stats().sessions.at(-1);
  assert.deepEqual([destroyed, rebinds], [0, 0], what);
  assert.ok(created > 0, what);
  await Promise.all([session.release(), onCPU.release()]);
  return dispatches;
}

// WB-67, WB-69
test('runs digits as the CPU provider does', async (t) => {
  const webnn = withWebNN(t);
  t.diagnostic(`${await compare(webnn, new Uint8Array(readFileSync(DIGITS)), 'digits')} dispatches`);
  assert.equal(webnn.live, 0);
});

// WB-70
test('runs a network with an operator that only the CPU has', async (t) => {
  const webnn = withWebNN(t);
  const weights = (name, dims) => ({name, dims, file: `${name}.bin`});
  const network = model({
    nodes: [
      {op: 'Conv', inputs: ['image', 'first'], outputs: ['edges']},
      {op: 'Relu', inputs: ['edges'], outputs: ['positive']},
      {op: 'Asinh', inputs: ['positive'], outputs: ['squeezed']},
      {op: 'Conv', inputs: ['squeezed', 'second'], outputs: ['features']},
      {op: 'GlobalAveragePool', inputs: ['features'], outputs: ['means']},
      {op: 'Flatten', inputs: ['means'], outputs: ['scores']},
      {op: 'Softmax', inputs: ['scores'], outputs: ['probabilities']},
    ],
    inputs: [{name: 'image', type: 'float32', shape: [2, 3, 12, 12]}],
    outputs: [
      {name: 'squeezed', type: 'float32', shape: [2, 8, 10, 10]},
      {name: 'probabilities', type: 'float32', shape: [2, 10]},
    ],
    initializers: [weights('first', [8, 3, 3, 3]), weights('second', [10, 8, 3, 3])],
  });
  const externalData = [
    {path: 'first.bin', data: noise(8 * 3 * 3 * 3).buffer},
    {path: 'second.bin', data: noise(10 * 8 * 3 * 3).buffer},
  ];
  assert.equal(await compare(webnn, network, 'network', {externalData}), 2);
  assert.equal(webnn.live, 0);
});

// WB-103
const MODELS =
  process.env.TENON_MODELS ??
  path.join(path.dirname(fileURLToPath(import.meta.url)), '../../../shared/models');
const mnist = existsSync(MODELS)
  ? readdirSync(MODELS, {recursive: true}).map(String).filter((file) => /mnist.*\.onnx$/.test(file))
  : [];
test('runs MNIST as the CPU provider does', {skip: mnist.length === 0}, async (t) => {
  const webnn = withWebNN(t);
  for (const file of mnist) {
    const bytes = new Uint8Array(readFileSync(path.join(MODELS, file)));
    t.diagnostic(`${file}: ${await compare(webnn, bytes, file)} dispatches`);
  }
  assert.equal(webnn.live, 0);
});
