// Sessions: create, run, metadata, options, errors, release.
import assert from 'node:assert/strict';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import path from 'node:path';
import test from 'node:test';

import {externalSum, identity, model, sumAndProduct} from './model.mjs';
import {DIGITS, load, printed} from './package.mjs';

const {InferenceSession, registerBackend, Tensor} = await load();
const {loadCore} = await load('core');

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

const floats = (...values) => new Tensor('float32', values, [values.length]);
const pair = () => ({a: floats(1, 2), b: floats(3, 4)});

for (const [type, [ArrayType, values]] of Object.entries(TYPES)) {
  test(`carries ${type}`, async () => {
    const session = await InferenceSession.create(identity(type));
    const {y} = await session.run({x: new Tensor(type, ArrayType.from(values), [2])});
    assert.equal(y.type, type);
    assert.deepEqual(y.dims, [2]);
    assert.ok(y.data instanceof ArrayType);
    assert.deepEqual(Array.from(y.data), values);
    await session.release();
  });
}

test('reads models in the format of ONNX Runtime', async () => {
  const file = readFileSync(new URL('../../fuzz/corpus/read_ort_fuzzer/branches.ort', import.meta.url));
  const session = await InferenceSession.create(new Uint8Array(file));
  const {a, s, t} = await session.run({
    x: new Tensor('float32', [1, 1, 1, 1], [1, 4]),
    c: new Tensor('bool', [true], []),
    rows: new Tensor('int64', [6n, 1n], [2]),
  });
  assert.deepEqual(Array.from(a.data), [2, 2]);
  for (const value of s.data) assert.ok(Math.abs(value - 5 / 3) < 1e-6);
  assert.deepEqual(Array.from(t.data), [6n, 1n]);
  await session.release();
  await assert.rejects(InferenceSession.create(new Uint8Array(file.subarray(0, 5000))), /damaged/);
});

// WB-19
test('carries float16 bit by bit', async () => {
  const session = await InferenceSession.create(identity('float16'));
  const {y} = await session.run({x: new Tensor('float16', Uint16Array.of(0x3c00, 0x7e01), [2])});
  assert.equal(y.type, 'float16');
  assert.deepEqual([...new Uint16Array(y.data.buffer)], [0x3c00, 0x7e01]);
});

test('carries strings', async () => {
  const session = await InferenceSession.create(identity('string'));
  const words = ['a', '', 'Zapfen ß', 'nul\0inside', '\ufeffmark'];
  const {y} = await session.run({x: new Tensor('string', words)});
  assert.deepEqual(y.data, words);
});

test('carries tensors without elements', async () => {
  const session = await InferenceSession.create(identity('float32'));
  const {y} = await session.run({x: floats()});
  assert.deepEqual(y.dims, [0]);
});

// WB-7
test('creates from a path, and from every kind of bytes', async () => {
  const bytes = new Uint8Array(readFileSync(DIGITS));
  const padded = new Uint8Array(bytes.length + 8);
  padded.set(bytes, 8);
  const shared = new SharedArrayBuffer(padded.length);
  new Uint8Array(shared).set(padded);
  const options = {logId: 'digits'};
  for (const model of [
    [DIGITS],
    [DIGITS, options],
    [bytes],
    [bytes, options],
    [bytes.buffer, options],
    [padded.buffer, 8],
    [padded.buffer, 8, bytes.length],
    [padded.buffer, 8, bytes.length, options],
    [shared, 8, bytes.length],
  ]) {
    const session = await InferenceSession.create(...model);
    assert.deepEqual(session.inputNames, ['image']);
    await session.release();
  }
});

// WB-7
test('says what is wrong with the arguments of create', async () => {
  const buffer = new ArrayBuffer(8);
  for (const args of [[], [7], [null], [[1, 2]], ['a.onnx', 3], [buffer, 'x'], [buffer, 0, 'x']]) {
    await assert.rejects(InferenceSession.create(...args), TypeError, String(args));
  }
  for (const args of [[-1], [9], [0.5], [0, 9], [4, 5], [0, -1], [0, 1.5]]) {
    await assert.rejects(InferenceSession.create(buffer, ...args), RangeError, String(args));
  }
});

test('cannot load what is not there', async () => {
  await assert.rejects(InferenceSession.create('/no/such/model.onnx'), /no such file/);
});

// WB-5, WB-98
test('leaves providers out that do not work, with one warning each', async () => {
  let session;
  const warnings = await printed('warn', async () => {
    session = await InferenceSession.create(identity('float32'), {
      executionProviders: [{name: 'webgpu'}, 'wasm'],
    });
  });
  assert.deepEqual(warnings, [
    "execution provider 'webgpu' is left out: there is no WebGPU yet: use 'webnn' or 'wasm'",
  ]);
  assert.deepEqual(session.inputNames, ['x']);
  await printed('warn', () =>
    assert.rejects(
      InferenceSession.create(identity('float32'), {executionProviders: ['webgpu', 'coreml']}),
      /'webgpu': there is no WebGPU yet.*; 'coreml': there is no such backend/,
    ),
  );
});

test('hands models over to the backend of the provider that is asked for', async () => {
  assert.throws(() => registerBackend('nothing', {}, 1), TypeError);
  const x = {name: 'x', isTensor: true, type: 'float32', shape: [1]};
  registerBackend(
    'echo',
    {
      init: async () => {},
      createInferenceSessionHandler: async () => ({
        inputMetadata: [x],
        outputMetadata: [x],
        run: async (feeds) => feeds,
      }),
    },
    -1,
  );
  const plain = await InferenceSession.create(identity('float32'));
  assert.deepEqual(plain.outputNames, ['y']);
  const session = await InferenceSession.create(new Uint8Array(), {executionProviders: ['echo']});
  const feeds = {x: floats(1)};
  assert.equal((await session.run(feeds)).x, feeds.x);
});

// WB-14
test('describes inputs and outputs', async () => {
  const session = await InferenceSession.create(
    model({
      nodes: [{op: 'Relu', inputs: ['x'], outputs: ['the "y"\n\\']}],
      inputs: [{name: 'x', type: 'float16', shape: ['batch', 3, '']}],
      outputs: [{name: 'the "y"\n\\', type: 'float16', shape: ['batch', 3, '']}],
    }),
  );
  const shape = ['batch', 3, ''];
  assert.deepEqual(session.inputMetadata, [{name: 'x', isTensor: true, type: 'float16', shape}]);
  assert.deepEqual(session.outputMetadata[0].name, 'the "y"\n\\');
  assert.deepEqual(session.outputNames, ['the "y"\n\\']);
});

// WB-9
test('runs for all outputs, or for those that are named', async () => {
  const session = await InferenceSession.create(sumAndProduct());
  const all = await session.run(pair());
  assert.deepEqual([...all.sum.data, ...all.product.data], [4, 6, 3, 8]);
  assert.deepEqual(Object.keys(await session.run(pair(), ['product'])), ['product']);
  assert.deepEqual(Object.keys(await session.run(pair(), {sum: null}, {tag: 'a run'})), ['sum']);
  assert.deepEqual(Object.keys(await session.run(pair(), {tag: 'a run'})), ['sum', 'product']);
});

// WB-9
test('names what is missing or unknown', async () => {
  const session = await InferenceSession.create(sumAndProduct());
  const {a, b} = pair();
  const wrong = [
    [[{a}], Error, /feeds: input 'b' is missing/],
    [[{a, b, bb: b}], Error, /there is no input 'bb'; did you mean 'b'\?/],
    [[{a, b: [1]}], TypeError, /'b' is no tensor/],
    [[null], TypeError, /feeds/],
    [[a], TypeError, /feeds/],
    [[pair(), []], TypeError, /at least one output name/],
    [[pair(), [3]], TypeError, /names of outputs/],
    [[pair(), ['produkt']], RangeError, /there is no output 'produkt'; did you mean 'product'\?/],
    [[pair(), {sum: null, produkt: null}], RangeError, /'produkt'/],
    [[pair(), {sum: 3}], TypeError, /'sum'/],
    [[pair(), a], TypeError, /fetches/],
    [[pair(), 'sum'], TypeError, /fetches/],
    [[pair(), null], TypeError, /fetches/],
    [[pair(), ['sum'], 3], TypeError, /options/],
  ];
  for (const [args, type, message] of wrong) {
    await assert.rejects(session.run(...args), (error) => {
      assert.equal(error.constructor, type, message);
      assert.match(error.message, message);
      return true;
    });
  }
});

test('writes an output to the tensor that is given for it', async () => {
  const session = await InferenceSession.create(sumAndProduct());
  const sum = floats(0, 0);
  const data = sum.data;
  const results = await session.run(pair(), {sum, product: null});
  assert.equal(results.sum, sum);
  assert.equal(sum.data, data);
  assert.deepEqual([...data], [4, 6]);
  await assert.rejects(
    session.run(pair(), {sum: floats(0, 0, 0)}),
    /fetches: output 'sum': expected float32 \[2\], got float32 \[3\]/,
  );
  const strings = await InferenceSession.create(identity('string'));
  const y = new Tensor('string', ['', '']);
  await strings.run({x: new Tensor('string', ['b', 'c'])}, {y});
  assert.deepEqual(y.data, ['b', 'c']);
});

// WB-11, WB-106
test('rejects with the text and the code of the core', async () => {
  const INVALID_ARGUMENT = 2;
  const INVALID_PROTOBUF = 7;
  await assert.rejects(InferenceSession.create(Uint8Array.of(1, 2, 3)), (error) => {
    assert.ok(error instanceof Error);
    assert.match(error.message, /^InferenceSession\.create: ./);
    assert.equal(error.code, INVALID_PROTOBUF);
    return true;
  });
  const session = await InferenceSession.create(sumAndProduct());
  await assert.rejects(session.run({a: floats(1, 2, 3), b: floats(1, 2)}), (error) => {
    assert.match(error.message, /^InferenceSession\.run: .*'a'/s);
    assert.equal(error.code, INVALID_ARGUMENT);
    return true;
  });
  assert.deepEqual([...(await session.run(pair())).sum.data], [4, 6]);
});

// WB-13
test('frees a session once', async () => {
  const session = await InferenceSession.create(sumAndProduct());
  const last = session.run(pair());
  await session.release();
  assert.deepEqual([...(await last).sum.data], [4, 6]);
  await assert.rejects(session.release(), /the session is released/);
  await assert.rejects(session.run(pair()), /the session is released/);
  assert.throws(() => session.endProfiling(), /the session is released/);
});

// WB-13
test('uses the memory of sessions that are gone again', async () => {
  const core = await loadCore();
  const image = new Tensor('float32', new Float32Array(8 * 64), [8, 1, 8, 8]);
  const bytes = [];
  for (let round = 0; round < 40; ++round) {
    const session = await InferenceSession.create(DIGITS, {enableProfiling: round % 2 === 1});
    for (let run = 0; run < 5; ++run) await session.run({image}, {tag: 'a run'});
    await printed('log', () => session.release());
    bytes.push(core.memory.buffer.byteLength);
  }
  assert.equal(bytes.at(-1), bytes[4]);
});

test('takes the options of onnxruntime-common', async () => {
  const session = await InferenceSession.create(identity('float32'), {
    executionMode: 'parallel',
    enableCpuMemArena: false,
    enableMemPattern: false,
    freeDimensionOverrides: {size: 2},
    graphOptimizationLevel: 'basic',
    logId: 'session',
    logSeverityLevel: 3,
    logVerbosityLevel: 0,
    extra: {session: {set_denormal_as_zero: '1'}},
    anUnknownOption: {of: 'another version'},
  });
  assert.deepEqual(session.inputMetadata[0].shape, [2]);
  const options = {logSeverityLevel: 4, logVerbosityLevel: 1, tag: 'a run', extra: {}};
  await session.run({x: floats(1, 2)}, options);
  const adder = await InferenceSession.create(sumAndProduct());
  await assert.rejects(adder.run(pair(), {terminate: true}), /terminate/);
});

test('takes weights from other files', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'tenon-web-'));
  t.after(() => rmSync(folder, {recursive: true}));
  const weights = Float32Array.of(10, 20);
  const file = path.join(folder, 'weights.bin');
  writeFileSync(file, weights);
  const bytes = new Uint8Array(weights.buffer);
  for (const data of [file, bytes, weights.buffer, new Blob([bytes])]) {
    const session = await InferenceSession.create(externalSum(), {
      externalData: [{path: './weights.bin', data}],
    });
    assert.deepEqual([...(await session.run({x: floats(1, 2)})).y.data], [11, 22]);
    await session.release();
  }
  await assert.rejects(InferenceSession.create(externalSum()), /weights\.bin/);
  const missing = {externalData: ['/no/such/weights.bin']};
  await assert.rejects(InferenceSession.create(externalSum(), missing), /no such file/);
  const wrong = {externalData: 'weights.bin'};
  await assert.rejects(InferenceSession.create(externalSum(), wrong), TypeError);
});

test('refuses bad values of options', async () => {
  const loop = {};
  loop.inside = loop;
  for (const [name, value] of Object.entries({
    executionMode: 'fast',
    enableCpuMemArena: 1,
    enableMemPattern: 'yes',
    enableProfiling: 'yes',
    profileFilePrefix: 7,
    freeDimensionOverrides: {size: -1},
    graphOptimizationLevel: 'most',
    logId: 3,
    logSeverityLevel: 5,
    logVerbosityLevel: -1,
    extra: loop,
  })) {
    const creation = InferenceSession.create(identity('float32'), {[name]: value});
    await assert.rejects(creation, new RegExp(`^TypeError: options\\.${name}`), name);
  }
  const unknown = {extra: {session: {intra_op: {spin: 'maybe'}}, nothing: null}};
  await assert.rejects(InferenceSession.create(identity('float32'), unknown), /'nothing'/);
});

// WB-15
test('neither changes feeds nor shows its memory', async () => {
  const session = await InferenceSession.create(identity('float32'));
  const x = floats(1, 2);
  const {y} = await session.run({x});
  assert.equal(x.data.buffer.byteLength, 8);
  assert.notEqual(y.data.buffer, x.data.buffer);
  assert.equal(y.data.buffer.byteLength, 8);
  y.data.fill(7);
  assert.deepEqual([...(await session.run({x})).y.data], [1, 2]);
});

// WB-15
test('sees feeds as they were at the call', async () => {
  const session = await InferenceSession.create(identity('float32'));
  const changes = [
    ({data}) => data.fill(7),
    ({data}) => structuredClone(data.buffer, {transfer: [data.buffer]}),
    (tensor) => tensor.dispose(),
    ({dims}) => dims.push(3),
  ];
  for (const change of changes) {
    const x = new Tensor('float32', Float32Array.of(1, 2), [2]);
    const pending = session.run({x});
    change(x);
    const {y} = await pending;
    assert.deepEqual([y.dims, [...y.data]], [[2], [1, 2]]);
  }
  const gone = floats(1, 2);
  structuredClone(gone.data.buffer, {transfer: [gone.data.buffer]});
  await assert.rejects(session.run({x: gone}), /^TypeError: feeds: input 'x': .* transferred/);
});
