// What the reference of WebNN refuses, and with which errors.
import assert from 'node:assert/strict';
import test from 'node:test';

import {reference} from './webnn.mjs';

const {createML, MLGraphBuilder} = reference;
const PAIR = {dataType: 'float32', shape: [2]};
const INVALID_STATE = {name: 'InvalidStateError', constructor: DOMException};

async function newContext() {
  return createML().createContext();
}

// A context with a graph y = -x, and tensors for it.
async function negation() {
  const context = await newContext();
  const builder = new MLGraphBuilder(context);
  const graph = await builder.build({y: builder.neg(builder.input('x', PAIR))});
  const tensor = (more = {}) => context.createTensor({...PAIR, ...more});
  return {context, graph, tensor, x: await tensor(), y: await tensor()};
}

// WB-92
test('refuses bad descriptors of tensors, operands and constants', async () => {
  const context = await newContext();
  for (const descriptor of [
    undefined,
    1,
    {},
    {shape: [1]},
    {dataType: 'float32'},
    {dataType: 'float64', shape: [1]},
    {dataType: 'int4', shape: [1]},
    {dataType: 'float32', shape: 1},
    {dataType: 'float32', shape: 'ab'},
    {dataType: 'float32', shape: [0]},
    {dataType: 'float32', shape: [2, 0]},
    {dataType: 'float32', shape: [-1]},
    {dataType: 'float32', shape: [NaN]},
    {dataType: 'float32', shape: [1n]},
    {dataType: 'float32', shape: [2 ** 31]},
    {dataType: 'float32', shape: [2 ** 32 + 1]},
    {dataType: 'float32', shape: [2 ** 29]}, // 2^31 bytes
    {dataType: 'float32', shape: [2 ** 20, 2 ** 20]},
    {dataType: 'float32', shape: Array(9).fill(1)},
  ]) {
    const what = JSON.stringify(descriptor, (_, value) =>
      typeof value === 'bigint' ? `${value}n` : value,
    );
    await assert.rejects(context.createTensor(descriptor), TypeError, what);
    const data = new ArrayBuffer(4);
    await assert.rejects(context.createConstantTensor(descriptor, data), TypeError, what);
    const builder = new MLGraphBuilder(context);
    assert.throws(() => builder.input('x', descriptor), TypeError, what);
    assert.throws(() => builder.constant(descriptor, data), TypeError, what);
  }
  const tensor = await context.createTensor({dataType: 'float32', shape: new Set([2.9, '3'])});
  assert.deepEqual(tensor.shape, [2, 3]); // as Web IDL converts them
});

// WB-92
test('refuses data of other lengths or types', async () => {
  const context = await newContext();
  const tensor = await context.createTensor({...PAIR, readable: true, writable: true});
  const builder = new MLGraphBuilder(context);
  const halves = {dataType: 'float16', shape: [2]};
  for (const [descriptor, data] of [
    [PAIR, new ArrayBuffer(7)],
    [PAIR, new ArrayBuffer(12)],
    [PAIR, new Float32Array(3)],
    [PAIR, new Int32Array(2)],
    [PAIR, new DataView(new ArrayBuffer(8))],
    [PAIR, [1, 2]],
    [PAIR, null],
    [PAIR, {byteLength: 8}],
    [halves, new Int16Array(2)],
    [{dataType: 'int64', shape: [1]}, new BigUint64Array(1)],
    [{dataType: 'uint8', shape: [4]}, new Int8Array(4)],
  ]) {
    const what = `${descriptor.dataType} of ${data?.constructor.name}`;
    assert.throws(() => builder.constant(descriptor, data), TypeError, what);
    await assert.rejects(context.createConstantTensor(descriptor, data), TypeError, what);
    if (descriptor !== PAIR) continue;
    assert.throws(() => context.writeTensor(tensor, data), TypeError, what);
    await assert.rejects(context.readTensor(tensor, data), TypeError, what);
  }
  for (const data of [new ArrayBuffer(8), new SharedArrayBuffer(8), new Uint8Array(8)]) {
    context.writeTensor(tensor, data);
    assert.equal(await context.readTensor(tensor, data), undefined);
    assert.ok(builder.constant(PAIR, data));
  }
  assert.ok(builder.constant(halves, new Uint16Array(2)));
  if (globalThis.Float16Array) assert.ok(builder.constant(halves, new Float16Array(2)));
});

// WB-92
test('refuses tensors that are foreign, destroyed, unreadable or unwritable', async () => {
  const {context, tensor} = await negation();
  const uses = {readable: true, writable: true};
  const foreign = await (await newContext()).createTensor({...PAIR, ...uses});
  const destroyed = await tensor(uses);
  destroyed.destroy();
  const constant = await context.createConstantTensor(PAIR, new Float32Array(2));
  const data = new Float32Array(2);
  for (const bad of [foreign, destroyed, constant, await tensor({readable: true}), {}, undefined]) {
    assert.throws(() => context.writeTensor(bad, data), TypeError);
  }
  for (const bad of [foreign, destroyed, constant, await tensor({writable: true}), {}, undefined]) {
    await assert.rejects(context.readTensor(bad), TypeError);
    await assert.rejects(context.readTensor(bad, data), TypeError);
  }
});

// WB-92
test('dispatches only what the graph has', async () => {
  const {context, graph, tensor, x, y} = await negation();
  const other = await newContext();
  const foreign = await other.createTensor(PAIR);
  const destroyed = await tensor();
  destroyed.destroy();
  const constant = await context.createConstantTensor(PAIR, new Float32Array(2));
  for (const bad of [
    foreign,
    destroyed,
    constant,
    await tensor({shape: [1, 2]}),
    await tensor({shape: [3]}),
    await tensor({dataType: 'int32'}),
    {},
    null,
  ]) {
    assert.throws(() => context.dispatch(graph, {x: bad}, {y}), TypeError);
    assert.throws(() => context.dispatch(graph, {x}, {y: bad}), TypeError);
  }
  for (const [inputs, outputs] of [
    [{}, {y}],
    [{x}, {}],
    [{z: x}, {y}],
    [{x}, {z: y}],
    [{x, z: await tensor()}, {y}],
    [{x}, {y, z: await tensor()}],
    [{x}, {y: x}], // twice
    [undefined, {y}],
    [1, {y}],
  ]) {
    assert.throws(() => context.dispatch(graph, inputs, outputs), TypeError);
  }
  assert.throws(() => context.dispatch({}, {x}, {y}), TypeError);
  assert.throws(() => other.dispatch(graph, {x}, {y}), TypeError);
  context.dispatch(graph, {x}, {y});
  graph.destroy();
  assert.throws(() => context.dispatch(graph, {x}, {y}), INVALID_STATE);
});

test('refuses one tensor for two inputs or outputs', async () => {
  const context = await newContext();
  const builder = new MLGraphBuilder(context);
  const [a, b] = [builder.input('a', PAIR), builder.input('b', PAIR)];
  const graph = await builder.build({sum: builder.add(a, b), difference: builder.sub(a, b)});
  const [one, two, three] = await Promise.all([1, 2, 3].map(() => context.createTensor(PAIR)));
  const fourth = await context.createTensor(PAIR);
  assert.throws(
    () => context.dispatch(graph, {a: one, b: one}, {sum: two, difference: three}),
    TypeError,
  );
  assert.throws(
    () => context.dispatch(graph, {a: one, b: two}, {sum: three, difference: three}),
    TypeError,
  );
  context.dispatch(graph, {b: one, a: two}, {difference: three, sum: fourth});
});

// WB-92
test('builds once, and only results of its own operators', async () => {
  const context = await newContext();
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', PAIR);
  const one = builder.constant('float32', 1);
  const y = builder.add(x, one);
  const foreign = new MLGraphBuilder(context);
  const theirs = foreign.neg(foreign.input('x', PAIR));
  for (const outputs of [
    {},
    undefined,
    1,
    {y: x},
    {y: one},
    {y, z: x},
    {'': y},
    {y: theirs},
    {y: {}},
    {y: null},
  ]) {
    await assert.rejects(builder.build(outputs), TypeError);
  }
  assert.throws(() => builder.add(x, theirs), TypeError);
  assert.throws(() => builder.add(x, {}), TypeError);
  assert.throws(() => builder.add(x), TypeError);
  assert.ok(await builder.build({y}));
  await assert.rejects(builder.build({y}), INVALID_STATE);
  assert.throws(() => builder.input('z', PAIR), INVALID_STATE);
  assert.throws(() => builder.constant(PAIR, new Float32Array(2)), INVALID_STATE);
  assert.throws(() => builder.constant('float32', 1), INVALID_STATE);
  assert.throws(() => builder.add(x, x), INVALID_STATE);
});

// WB-92
test('has inputs of different names that are not empty', async () => {
  const builder = new MLGraphBuilder(await newContext());
  builder.input('x', PAIR);
  assert.throws(() => builder.input('x', PAIR), TypeError);
  assert.throws(() => builder.input('', PAIR), TypeError);
  builder.input('X', PAIR);
});

// WB-92
test('takes constant tensors of its context that live', async () => {
  const context = await newContext();
  const builder = new MLGraphBuilder(context);
  const foreign = await newContext();
  const data = new Float32Array(2);
  const destroyed = await context.createConstantTensor(PAIR, data);
  destroyed.destroy();
  for (const bad of [
    await foreign.createConstantTensor(PAIR, data),
    await context.createTensor(PAIR),
    destroyed,
    {},
  ]) {
    assert.throws(() => builder.constant(bad), TypeError);
  }
  const constant = await context.createConstantTensor(PAIR, data);
  const y = builder.neg(builder.constant(constant));
  constant.destroy();
  await assert.rejects(builder.build({y}), TypeError);
});

test('casts constants and options to the type, as the draft says', async () => {
  const context = await newContext();
  for (const [dataType, value, expected] of [
    ['int8', 300, 127],
    ['int8', -1e9, -128],
    ['uint8', 2.5, 2],
    ['uint8', 3.5, 4],
    ['uint8', NaN, 0],
    ['int32', Infinity, 2 ** 31 - 1],
    ['uint32', -1, 0],
    ['int64', 2n ** 70n, 2n ** 63n - 1n],
    ['uint64', 2n ** 64n - 1n, 2n ** 64n - 1n],
    ['int64', 2 ** 53 + 2, 2n ** 53n + 2n],
    ['float32', 0.1, Math.fround(0.1)],
    ['float32', 2n ** 60n + 1n, 2 ** 60],
    ['float16', 65519, 65504],
    ['float16', 65520, Infinity],
    ['float16', 0.1, 0.0999755859375],
    ['float16', -1e-9, -0],
  ]) {
    const builder = new MLGraphBuilder(context);
    const graph = await builder.build({y: builder.identity(builder.constant(dataType, value))});
    const y = await context.createTensor({dataType, shape: [], readable: true});
    context.dispatch(graph, {}, {y});
    const buffer = await context.readTensor(y);
    const arrays = {
      float32: Float32Array,
      int8: Int8Array,
      uint8: Uint8Array,
      int32: Int32Array,
      uint32: Uint32Array,
      int64: BigInt64Array,
      uint64: BigUint64Array,
    };
    const got =
      dataType === 'float16'
        ? {0x7bff: 65504, 0x7c00: Infinity, 0x2e66: 0.0999755859375, 0x8000: -0}[
            new Uint16Array(buffer)[0]
          ]
        : new arrays[dataType](buffer)[0];
    assert.ok(Object.is(got, expected), `${dataType} of ${value}: ${got}`);
  }
});

test('refuses bad options of createContext', async () => {
  const ml = createML();
  await assert.rejects(ml.createContext({powerPreference: 'much'}), TypeError);
  await assert.rejects(ml.createContext(1), TypeError);
  assert.ok(await ml.createContext(null));
});

// Operators: what each refuses. f is a float32 input of a shape, i an int32 one, u an uint8 one.
const f = (...shape) => ({dataType: 'float32', shape});
const h = (...shape) => ({dataType: 'float16', shape});
const i = (...shape) => ({dataType: 'int32', shape});
const u = (...shape) => ({dataType: 'uint8', shape});
const FLOAT_ONLY =
  `ceil cos erf exp floor log reciprocal roundEven sin sqrt tan elu gelu hardSigmoid
  hardSwish leakyRelu linear sigmoid softplus softsign tanh isNaN isInfinite
  reduceL2 reduceLogSum reduceLogSumExp reduceMean`.split(/\s+/);
const BINARY = `add sub mul div max min pow equal notEqual greater greaterOrEqual lesser
  lesserOrEqual`.split(/\s+/);
const REFUSED = {
  ...Object.fromEntries(FLOAT_ONLY.map((name) => [name, [[i(2)], [undefined], [{}]]])),
  ...Object.fromEntries(
    BINARY.map((name) => [
      name,
      [[f(2), i(2)], [f(2), h(2)], [f(2), f(3)], [f(2, 3), f(2)], [f(2)]],
    ]),
  ),
  abs: [[u(2)]],
  neg: [[u(2)]],
  sign: [[u(2)]],
  relu: [[u(2)]],
  prelu: [
    [f(2, 3), f(2)],
    [f(2), h(2)],
    [u(2), u(2)],
  ],
  logicalNot: [[f(2)], [i(2)]],
  logicalAnd: [
    [u(2), i(2)],
    [i(2), i(2)],
    [u(2), u(3)],
  ],
  logicalOr: [
    [f(2), f(2)],
    [u(2), u(3)],
  ],
  logicalXor: [
    [f(2), f(2)],
    [u(2), u(3)],
  ],
  identity: [[undefined]],
  elu: [
    [f(2), {alpha: Infinity}],
    [f(2), {alpha: 'x'}],
    [f(2), 1],
  ],
  cast: [[f(2), 'float64'], [f(2)]],
  clamp: [
    [f(2), {minValue: 2, maxValue: 1}],
    [u(2), {minValue: 300n, maxValue: 254}],
  ],
  where: [
    [i(2), f(2), f(2)],
    [u(2), f(2), i(2)],
    [u(2), f(3), f(3)],
    [u(1), f(2), f(3)],
  ],
  argMax: [[f(2), 1], [f(2), -1], [f(), 0], [f(2), 0, {outputDataType: 'uint8'}], [f(2)]],
  argMin: [
    [f(2), 1],
    [f(2), 0, {outputDataType: 'float32'}],
  ],
  batchNormalization: [
    [f(2, 3), f(2), f(3)],
    [f(2, 3), f(3), f(2)],
    [f(2, 3), f(3), f(1, 3)],
    [f(2, 3), h(3), f(3)],
    [f(2, 3), f(3), f(3), {axis: 2}],
    [f(2, 3), f(3), f(3), {axis: 0}],
    [f(2, 3), f(3), f(3), {scale: f(2)}],
    [f(2, 3), f(3), f(3), {bias: h(3)}],
    [f(2, 3), f(3), f(3), {epsilon: NaN}],
    [i(2, 3), i(3), i(3)],
  ],
  instanceNormalization: [
    [f(1, 2, 3)],
    [f(1, 2, 3, 4), {scale: f(3)}],
    [f(1, 2, 3, 4), {bias: f(2), layout: 'nhwc'}],
    [f(1, 2, 3, 4), {layout: 'chwn'}],
    [f(1, 2, 3, 4), {scale: h(2)}],
  ],
  layerNormalization: [
    [f(2, 3), {axes: [2]}],
    [f(2, 3), {axes: [1, 1]}],
    [f(2, 3), {scale: f(2)}],
    [f(2, 3), {axes: [0, 1], bias: f(3, 2)}],
    [f(2, 3), {scale: h(3)}],
    [i(2, 3)],
  ],
  concat: [
    [[], 0],
    [[f(2), f(2)], 1],
    [[f(2), h(2)], 0],
    [[f(2, 3), f(2)], 0],
    [[f(2, 3), f(2, 4)], 0],
    [[f()], 0],
    [f(2), 0],
    [[f(2), null], 0],
  ],
  expand: [
    [f(2), [3]],
    [f(2, 2), [2]],
    [f(1), [0]],
    [f(1), 2],
  ],
  gather: [
    [f(), i(1)],
    [f(2), f(1)],
    [f(2), u(1)],
    [f(2), i(1), {axis: 1}],
  ],
  gatherElements: [
    [f(2, 3), i(2)],
    [f(2, 3), i(2, 2)],
    [f(2, 3), i(1, 3), {axis: 2}],
    [f(2), u(2)],
  ],
  gatherND: [
    [f(2), i(1, 2)],
    [f(2), i()],
    [f(2), f(1, 1)],
    [f(), i(1, 1)],
  ],
  scatterElements: [
    [f(2, 3), i(1, 3), f(2, 3)],
    [f(2, 3), i(1, 2), f(1, 2)],
    [f(2, 3), i(1, 3), h(1, 3)],
    [f(2, 3), f(1, 3), f(1, 3)],
    [f(2, 3), i(1, 3), f(1, 3), {axis: 2}],
  ],
  scatterND: [
    [f(2, 3), i(1, 3), f(1)],
    [f(2, 3), i(4, 1), f(4, 2)],
    [f(2, 3), i(4, 1), h(4, 3)],
    [f(2, 3), u(4, 1), f(4, 3)],
  ],
  pad: [
    [f(), [], []],
    [f(2), [1, 1], [1]],
    [f(2), [1], [1, 1]],
    [f(2), [-1], [1]],
    [f(2), [2], [0], {mode: 'reflection'}],
    [f(2), [0], [2], {mode: 'reflection'}],
    [f(2), [1], [1], {mode: 'symmetric'}],
    [f(2), [2 ** 31], [1]],
  ],
  reshape: [
    [f(2, 3), [5]],
    [f(2), [2, 0]],
    [f(2), [-2]],
    [f(2), []],
  ],
  reverse: [
    [f(2), {axes: [1]}],
    [f(2, 2), {axes: [0, 0]}],
  ],
  slice: [
    [f(4), [0], [5]],
    [f(4), [3], [2]],
    [f(4), [4], [1]],
    [f(4), [0], [0]],
    [f(4), [0, 0], [1]],
    [f(4), [0], [1, 1]],
    [f(4), [0], [1], {strides: [0]}],
    [f(4), [0], [1], {strides: [1, 1]}],
  ],
  split: [
    [f(4), 3],
    [f(4), 0],
    [f(4), [1, 2]],
    [f(4), [4, 0]],
    [f(4), 2, {axis: 1}],
    [f(), 1],
  ],
  tile: [
    [f(2), [1, 1]],
    [f(2), [0]],
    [f(2), [2 ** 31]],
  ],
  transpose: [
    [f(2, 3), {permutation: [0]}],
    [f(2, 3), {permutation: [0, 0]}],
    [f(2, 3), {permutation: [0, 2]}],
  ],
  triangular: [[f(2)], [f(2, 2), {diagonal: 2 ** 31}], [f(2, 2), {diagonal: NaN}]],
  reduceL1: [[u(2)]],
  reduceSum: [[f(2), {axes: [1]}], [f(2, 2), {axes: [0, 0]}], [u(2)], [f(2), {axes: 0}]],
  reduceProduct: [[u(2)]],
  reduceSumSquare: [[u(2)]],
  reduceMax: [[f(2), {axes: [1]}]],
  reduceMin: [[f(2), {axes: [1]}]],
  softmax: [
    [f(2), 1],
    [f(), 0],
    [i(2), 0],
  ],
  cumulativeSum: [
    [f(2), 1],
    [f(), 0],
  ],
  matmul: [
    [f(2), f(2, 2)],
    [f(2, 3), f(2, 3)],
    [f(2, 2, 3), f(3, 3, 2)],
    [f(2, 3), h(3, 2)],
    [i(2, 2), i(2, 2)],
  ],
  gemm: [
    [f(2, 3), f(2, 3)],
    [f(2, 3), f(3, 4), {aTranspose: true}],
    [f(2, 3), f(3, 4), {bTranspose: true}],
    [f(2, 3), f(3, 4), {c: f(3)}],
    [f(2, 3), f(3, 4), {c: f(1, 2, 4)}],
    [f(2, 3), f(3, 4), {c: h(4)}],
    [f(1, 2, 3), f(3, 4)],
    [f(2, 3), f(3, 4), {alpha: NaN}],
  ],
  conv2d: [
    [f(1, 2, 3), f(1, 2, 1, 1)],
    [f(1, 2, 3, 3), f(1, 3, 1, 1)],
    [f(1, 2, 3, 3), h(1, 2, 1, 1)],
    [i(1, 2, 3, 3), i(1, 2, 1, 1)],
    [f(1, 2, 3, 3), f(1, 2, 4, 1)],
    [f(1, 2, 3, 3), f(1, 2, 1, 1), {padding: [0, 0]}],
    [f(1, 2, 3, 3), f(1, 2, 1, 1), {strides: [0, 1]}],
    [f(1, 2, 3, 3), f(1, 2, 1, 1), {strides: [1]}],
    [f(1, 2, 3, 3), f(1, 2, 1, 1), {dilations: [1, 0]}],
    [f(1, 2, 3, 3), f(1, 2, 1, 1), {groups: 0}],
    [f(1, 2, 3, 3), f(2, 1, 1, 1), {groups: 3}],
    [f(1, 4, 3, 3), f(3, 2, 1, 1), {groups: 2}],
    [f(1, 2, 3, 3), f(1, 2, 1, 1), {bias: f(2)}],
    [f(1, 2, 3, 3), f(1, 2, 1, 1), {bias: h(1)}],
    [f(1, 2, 3, 3), f(1, 2, 1, 1), {inputLayout: 'nhwc'}],
    [f(1, 2, 3, 3), f(1, 2, 1, 1), {filterLayout: 'iohw'}],
  ],
  convTranspose2d: [
    [f(1, 2, 3, 3), f(3, 1, 1, 1)],
    [f(1, 2, 3, 3), f(2, 1, 1, 1), {groups: 3}],
    [f(1, 2, 3, 3), f(2, 1, 1, 1), {outputPadding: [1, 0]}],
    [f(1, 2, 3, 3), f(2, 1, 1, 1), {outputPadding: [0]}],
    [f(1, 2, 3, 3), f(2, 1, 1, 1), {outputSizes: [4, 3]}],
    [f(1, 2, 3, 3), f(2, 1, 1, 1), {outputSizes: [2, 3]}],
    [f(1, 2, 3, 3), f(2, 1, 1, 1), {outputSizes: [3]}],
    [f(1, 2, 3, 3), f(2, 1, 1, 1), {padding: [2, 2, 0, 0]}],
    [f(1, 2, 3, 3), f(2, 1, 1, 1), {bias: f(2)}],
    [f(1, 2, 3, 3), f(2, 1, 1, 1), {filterLayout: 'oihw'}],
  ],
  averagePool2d: [
    [f(1, 2, 3)],
    [i(1, 1, 3, 3)],
    [f(1, 1, 3, 3), {windowDimensions: [4, 1]}],
    [f(1, 1, 3, 3), {windowDimensions: [1]}],
    [f(1, 1, 3, 3), {windowDimensions: [0, 1]}],
    [f(1, 1, 3, 3), {padding: [1]}],
    [f(1, 1, 3, 3), {strides: [1, 0]}],
    [f(1, 1, 3, 3), {dilations: [0, 1]}],
    [f(1, 1, 3, 3), {outputSizes: [2, 2]}],
    [f(1, 1, 3, 3), {outputSizes: [1]}],
    [f(1, 1, 3, 3), {outputShapeRounding: 'round'}],
  ],
  l2Pool2d: [[i(1, 1, 3, 3)]],
  maxPool2d: [[f(1, 1, 1, 3, 3)], [f(1, 1, 3, 3), {layout: 'hwcn'}]],
  resample2d: [
    [f(1, 2, 3)],
    [i(1, 1, 2, 2)],
    [f(1, 1, 2, 2), {scales: [1]}],
    [f(1, 1, 2, 2), {scales: [0, 1]}],
    [f(1, 1, 2, 2), {scales: [0.25, 1]}],
    [f(1, 1, 2, 2), {sizes: [2]}],
    [f(1, 1, 2, 2), {sizes: [0, 2]}],
    [f(1, 1, 2, 2), {axes: [2]}],
    [f(1, 1, 2, 2), {axes: [2, 2]}],
    [f(1, 1, 2, 2), {axes: [2, 4]}],
    [f(1, 1, 2, 2), {mode: 'cubic'}],
  ],
  quantizeLinear: [
    [i(2), f(1), u(1)],
    [f(2), h(1), u(1)],
    [f(2), f(1), f(1)],
    [f(2), f(1), u(2)],
    [f(4), f(3), u(3)],
    [f(2, 2), f(2), u(2)],
  ],
  dequantizeLinear: [
    [f(2), f(1), f(1)],
    [u(2), u(1), u(1)],
    [u(2), f(1), i(1)],
    [u(2), f(1), u(2)],
    [u(4), f(3), u(3)],
    [u(2, 2), f(2), u(2)],
  ],
  gru: [
    [f(2, 1, 3), f(1, 12, 3), f(1, 12, 4), 3, 4],
    [f(2, 1, 3), f(1, 12, 2), f(1, 12, 4), 2, 4],
    [f(2, 1, 3), f(1, 12, 3), f(1, 12, 3), 2, 4],
    [f(2, 1, 3), f(1, 12, 3), f(1, 12, 4), 2, 4, {direction: 'both'}],
    [f(2, 1, 3), f(1, 12, 3), f(1, 12, 4), 2, 4, {bias: f(12)}],
    [f(2, 1, 3), f(1, 12, 3), f(1, 12, 4), 2, 4, {recurrentBias: h(1, 12)}],
    [f(2, 1, 3), f(1, 12, 3), f(1, 12, 4), 2, 4, {initialHiddenState: f(1, 2, 4)}],
    [f(2, 1, 3), f(1, 12, 3), f(1, 12, 4), 2, 4, {activations: ['relu']}],
    [f(2, 1, 3), f(1, 12, 3), f(1, 12, 4), 2, 4, {activations: ['relu', 'gelu']}],
    [f(2, 1, 3), f(1, 12, 3), f(1, 12, 4), 2, 4, {layout: 'nrz'}],
    [f(2, 1, 3), h(1, 12, 3), f(1, 12, 4), 2, 4],
    [i(2, 1, 3), i(1, 12, 3), i(1, 12, 4), 2, 4],
    [f(2, 1, 3), f(1, 12, 3), f(1, 12, 4), 2, 2 ** 30],
    [f(1, 3), f(1, 12, 3), f(1, 12, 4), 1, 4],
  ],
  gruCell: [
    [f(1, 3), f(12, 3), f(12, 4), f(2, 4), 4],
    [f(1, 3), f(12, 3), f(12, 4), f(1, 3), 4],
    [f(1, 3), f(12, 2), f(12, 4), f(1, 4), 4],
    [f(1, 3), f(12, 3), f(12, 3), f(1, 4), 4],
    [f(1, 3), f(12, 3), f(12, 4), f(1, 4), 0],
    [f(1, 3), f(12, 3), f(12, 4), f(1, 4), 4, {bias: f(1, 12)}],
  ],
  lstm: [
    [f(2, 1, 3), f(1, 16, 3), f(1, 16, 4), 1, 4],
    [f(2, 1, 3), f(1, 12, 3), f(1, 16, 4), 2, 4],
    [f(2, 1, 3), f(1, 16, 3), f(1, 16, 4), 2, 4, {peepholeWeight: f(1, 16)}],
    [f(2, 1, 3), f(1, 16, 3), f(1, 16, 4), 2, 4, {initialCellState: f(1, 1, 3)}],
    [f(2, 1, 3), f(1, 16, 3), f(1, 16, 4), 2, 4, {activations: ['relu', 'tanh']}],
    [f(2, 1, 3), f(1, 16, 3), f(1, 16, 4), 2, 4, {layout: 'zrn'}],
  ],
  lstmCell: [
    [f(1, 3), f(16, 3), f(16, 4), f(1, 4), f(1, 3), 4],
    [f(1, 3), f(16, 3), f(16, 4), f(1, 3), f(1, 4), 4],
    [f(1, 3), f(16, 3), f(16, 4), f(1, 4), f(1, 4), 4, {peepholeWeight: f(16)}],
    [f(1, 3), f(16, 3), f(16, 4), f(1, 4), h(1, 4), 4],
    [f(1, 3), f(16, 3), f(16, 4), f(1, 4), f(1, 4), 4, {recurrentBias: f(12)}],
  ],
};

// Descriptors in arguments become inputs.
function withInputs(builder, value) {
  let count = 0;
  const convert = (item) => {
    if (Array.isArray(item)) return item.map(convert);
    if (typeof item !== 'object' || item === null) return item;
    if ('dataType' in item) return builder.input(`x${count++}`, item);
    return Object.fromEntries(
      Object.entries(item).map(([name, member]) => [name, convert(member)]),
    );
  };
  return value.map(convert);
}

test('has something to refuse for every operator', () => {
  assert.deepEqual(Object.keys(REFUSED).sort(), Object.keys(MLGraphBuilder.prototype).sort());
});

for (const [operator, list] of Object.entries(REFUSED)) {
  // WB-92
  test(`refuses wrong arguments of ${operator}`, async () => {
    const context = await newContext();
    for (const [index, args] of list.entries()) {
      const builder = new MLGraphBuilder(context);
      const given = withInputs(builder, args);
      // Texts begin with the operator; those of mistakes in the reference itself would not.
      const expected = {name: 'TypeError', message: new RegExp(`^${operator}: `)};
      assert.throws(() => builder[operator](...given), expected, `${index}`);
    }
  });
}

test('names operator, label, operand, what was expected and what came', async () => {
  const builder = new MLGraphBuilder(await newContext());
  const [a, b] = [builder.input('a', f(2, 3)), builder.input('b', i(2))];
  assert.throws(() => builder.add(a, b), {
    message: 'add: b: expected the type float32, got int32',
  });
  assert.throws(() => builder.transpose(a, {label: 'heads/3', permutation: [0]}), {
    message: "transpose 'heads/3': permutation: expected 2 axes, got 1",
  });
});
