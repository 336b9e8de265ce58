// onnxruntime-node with this library instead of its own: create, run, metadata, errors, options.
// run_client.py prepares the package and the models.
import assert from 'node:assert/strict';
import {createRequire} from 'node:module';
import {readdirSync, readFileSync} from 'node:fs';
import path from 'node:path';
import test from 'node:test';

const require = createRequire(path.join(process.env.TENON_NODE_PACKAGE, 'index.js'));
const ort = require('onnxruntime-node');
const models = process.env.TENON_NODE_MODELS;
const model = (name) => path.join(models, `${name}.onnx`);

// Type of ONNX -> the array that the package takes, and two values.
const TYPES = {
  float32: [Float32Array, [1.5, -2]],
  float64: [Float64Array, [1.5, -2]],
  int8: [Int8Array, [1, -128]],
  uint8: [Uint8Array, [1, 255]],
  int16: [Int16Array, [1, -32768]],
  uint16: [Uint16Array, [1, 65535]],
  int32: [Int32Array, [1, -(2 ** 31)]],
  uint32: [Uint32Array, [1, 2 ** 32 - 1]],
  int64: [BigInt64Array, [1n, -(2n ** 63n)]],
  uint64: [BigUint64Array, [1n, 2n ** 64n - 1n]],
  bool: [Uint8Array, [1, 0]],
};

for (const [type, [ArrayType, values]] of Object.entries(TYPES)) {
  test(`carries ${type}`, async () => {
    const session = await ort.InferenceSession.create(model(`identity_${type}`));
    const x = new ort.Tensor(type, ArrayType.from(values), [1, 2]);
    const {y} = await session.run({x});
    assert.equal(y.type, type);
    assert.deepEqual(y.dims, [1, 2]);
    assert.deepEqual(Array.from(y.data), values);
    await session.release();
  });
}

test('carries strings', async () => {
  const session = await ort.InferenceSession.create(model('identity_string'));
  const {y} = await session.run({x: new ort.Tensor('string', ['a', 'Zapfen ß'], [2])});
  assert.deepEqual(Array.from(y.data), ['a', 'Zapfen ß']);
});

test('loads from bytes', async () => {
  const session = await ort.InferenceSession.create(readFileSync(model('sum')));
  const x = new ort.Tensor('float32', new Float32Array([1, 2]), [2]);
  const {y} = await session.run({x});
  assert.deepEqual(Array.from(y.data), [2, 4]);
});

test('describes inputs and outputs', async () => {
  const session = await ort.InferenceSession.create(model('sum'));
  assert.deepEqual(session.inputNames, ['x']);
  assert.deepEqual(session.outputNames, ['y', 'n']);
  assert.deepEqual(session.inputMetadata[0].shape, ['size']);
  assert.equal(session.inputMetadata[0].type, 'float32');
  assert.equal(session.outputMetadata[1].isTensor, true);
});

test('gives the outputs that are asked for, also into given tensors', async () => {
  const session = await ort.InferenceSession.create(model('sum'));
  const x = new ort.Tensor('float32', new Float32Array([1, 2]), [2]);
  assert.deepEqual(Object.keys(await session.run({x}, ['n'])), ['n']);
  const y = new ort.Tensor('float32', new Float32Array(2), [2]);
  await session.run({x}, {y});
  assert.deepEqual(Array.from(y.data), [2, 4]);
});

test('says what is wrong', async () => {
  await assert.rejects(ort.InferenceSession.create(path.join(models, 'missing.onnx')), /missing/);
  await assert.rejects(ort.InferenceSession.create(new Uint8Array([1, 2, 3])), /.+/);
  const session = await ort.InferenceSession.create(model('sum'));
  const wrong = new ort.Tensor('int32', new Int32Array([1]), [1]);
  const types = /Actual: \(tensor\(int32\)\) , expected: \(tensor\(float\)\)/;
  await assert.rejects(session.run({x: wrong}), types);
  await assert.rejects(session.run({}), /x/);
  const matrix = new ort.Tensor('float32', new Float32Array(4), [2, 2]);
  await assert.rejects(session.run({x: matrix}), /rank 1/);
  const x = new ort.Tensor('float32', new Float32Array([1, 2]), [2]);
  assert.deepEqual(Array.from((await session.run({x})).y.data), [2, 4]);
});

test('takes options', async () => {
  const session = await ort.InferenceSession.create(model('sum'), {
    executionProviders: ['cpu'],
    intraOpNumThreads: 2,
    interOpNumThreads: 1,
    graphOptimizationLevel: 'all',
    enableCpuMemArena: true,
    enableMemPattern: true,
    executionMode: 'sequential',
    logId: 'node',
    logSeverityLevel: 3,
    freeDimensionOverrides: {size: 2},
    extra: {session: {memory_limit: '1000000'}},
  });
  const x = new ort.Tensor('float32', new Float32Array([1, 2]), [2]);
  const {y} = await session.run({x}, {logSeverityLevel: 3, tag: 'a run'});
  assert.deepEqual(Array.from(y.data), [2, 4]);
});

test('PR-1: profiles', async () => {
  const prefix = path.join(models, 'trace');
  const session = await ort.InferenceSession.create(model('sum'), {
    enableProfiling: true,
    profileFilePrefix: prefix,
  });
  await session.run({x: new ort.Tensor('float32', new Float32Array([1]), [1])});
  session.endProfiling();
  const traces = readdirSync(models).filter((name) => /^trace_.*\.json$/.test(name));
  assert.equal(traces.length, 1);
  const events = JSON.parse(readFileSync(path.join(models, traces[0]), 'utf8'));
  assert.ok(events.some((event) => event.cat === 'Node' && event.args.op_name === 'Add'));
});

test('runs many at once', async () => {
  const session = await ort.InferenceSession.create(model('sum'));
  const runs = Array.from({length: 32}, async (_, i) => {
    const x = new ort.Tensor('float32', new Float32Array([i]), [1]);
    assert.equal((await session.run({x})).y.data[0], 2 * i);
  });
  await Promise.all(runs);
});

test('recognizes digits', async () => {
  const digits = process.env.TENON_NODE_DIGITS;
  const session = await ort.InferenceSession.create(digits);
  const image = new ort.Tensor('float32', new Float32Array(128), [2, 1, 8, 8]);
  const {probabilities} = await session.run({image});
  assert.deepEqual(probabilities.dims, [2, 10]);
  const sum = probabilities.data.slice(0, 10).reduce((a, b) => a + b, 0);
  assert.ok(Math.abs(sum - 1) < 1e-5);
});
