// The surface of the reference of WebNN, and what `install` changes.
import assert from 'node:assert/strict';
import test from 'node:test';

import {reference, run} from './webnn.mjs';

const {createML, install, ML, MLContext, MLGraph, MLGraphBuilder, MLOperand, MLTensor} = reference;

// The operators of the draft of June 2026.
const OPERATORS = `
  argMin argMax batchNormalization cast clamp concat conv2d convTranspose2d cumulativeSum
  add sub mul div max min pow
  equal notEqual greater greaterOrEqual lesser lesserOrEqual
  logicalNot logicalAnd logicalOr logicalXor isNaN isInfinite
  abs ceil cos erf exp floor identity log neg reciprocal roundEven sin sign sqrt tan
  dequantizeLinear quantizeLinear elu expand gather gatherElements gatherND gelu gemm gru gruCell
  hardSigmoid hardSwish instanceNormalization layerNormalization leakyRelu linear lstm lstmCell
  matmul pad averagePool2d l2Pool2d maxPool2d prelu
  reduceL1 reduceL2 reduceLogSum reduceLogSumExp reduceMax reduceMean reduceMin reduceProduct
  reduceSum reduceSumSquare relu resample2d reshape reverse scatterElements scatterND sigmoid slice
  softmax softplus softsign split tanh tile transpose triangular where`
  .trim()
  .split(/\s+/);

// WB-90
test('has all operators of the draft, and limits of each', async () => {
  assert.equal(OPERATORS.length, 95);
  assert.deepEqual(Object.keys(MLGraphBuilder.prototype).sort(), [...OPERATORS].sort());
  const context = await createML().createContext();
  const limits = context.opSupportLimits();
  const {preferredInputLayout, maxTensorByteLength, input, constant, output, ...operators} = limits;
  assert.deepEqual(Object.keys(operators).sort(), [...OPERATORS].sort());
  assert.equal(preferredInputLayout, 'nchw');
  assert.equal(maxTensorByteLength, 2 ** 31 - 1);
  const types = ['float32', 'float16', 'int32', 'uint32', 'int64', 'uint64', 'int8', 'uint8'];
  for (const some of [input, constant, output]) {
    assert.deepEqual(some, {dataTypes: types, rankRange: {min: 0, max: 8}});
  }
  assert.deepEqual(limits.conv2d.filter, {
    dataTypes: ['float32', 'float16'],
    rankRange: {min: 4, max: 4},
  });
  for (const name of OPERATORS) assert.equal(MLGraphBuilder.prototype[name].name, name);
});

test('changes nothing outside when limits are changed', async () => {
  const context = await createML().createContext();
  context.opSupportLimits().add.a.dataTypes.length = 0;
  assert.equal(context.opSupportLimits().add.a.dataTypes.length, 8);
});

// WB-90
test('computes from tensors to tensors', async () => {
  const context = await createML().createContext({powerPreference: 'low-power'});
  assert.ok(context instanceof MLContext);
  assert.equal(context.accelerated, false);
  const builder = new MLGraphBuilder(context);
  const descriptor = {dataType: 'float32', shape: [2, 2]};
  const a = builder.input('a', descriptor);
  assert.ok(a instanceof MLOperand);
  assert.equal(a.dataType, 'float32');
  assert.deepEqual(a.shape, [2, 2]);
  assert.throws(() => a.shape.push(1), TypeError);
  const half = builder.constant(descriptor, new Float32Array(4).fill(0.5));
  const weights = await context.createConstantTensor(descriptor, Float32Array.of(1, 2, 3, 4));
  const graph = await builder.build({
    sum: builder.add(builder.mul(a, half), builder.constant('float32', 10)),
    product: builder.matmul(a, builder.constant(weights)),
  });
  assert.ok(graph instanceof MLGraph);
  const input = await context.createTensor({...descriptor, writable: true});
  const [sum, product] = await Promise.all([
    context.createTensor({...descriptor, readable: true}),
    context.createTensor({...descriptor, readable: true}),
  ]);
  assert.ok(sum instanceof MLTensor);
  assert.deepEqual(
    [sum.dataType, sum.shape, sum.readable, sum.writable, sum.constant, weights.constant],
    ['float32', [2, 2], true, false, false, true],
  );
  context.writeTensor(input, Float32Array.of(1, 2, 3, 4));
  context.dispatch(graph, {a: input}, {sum, product});
  assert.deepEqual(
    new Float32Array(await context.readTensor(sum)),
    Float32Array.of(10.5, 11, 11.5, 12),
  );
  const into = new Float32Array(6);
  assert.equal(await context.readTensor(product, into.subarray(1, 5)), undefined);
  assert.deepEqual(into, Float32Array.of(0, 7, 10, 15, 22, 0));
});

test('has results of several outputs, and names that one operand has twice', async () => {
  const x = {dataType: 'int32', shape: [4], data: [1, 2, 3, 4]};
  const {first, second, again} = await run({x}, (builder, operands) => {
    const [first, second] = builder.split(operands.x, [1, 3]);
    return {first, second, again: first};
  });
  assert.deepEqual([first.data, second.data, again.data], [[1], [2, 3, 4], [1]]);
});

test('takes a GPU device for options, and says whether it is accelerated', async () => {
  const context = await createML({accelerated: true}).createContext({limits: {}, queue: {}});
  assert.equal(context.accelerated, true);
  const other = await createML({accelerated: true}).createContext({accelerated: false});
  assert.equal(other.accelerated, false);
});

test('cannot be constructed or forged', async () => {
  for (const Interface of [ML, MLContext, MLGraph, MLOperand, MLTensor]) {
    assert.throws(() => new Interface(), {name: 'TypeError', message: 'Illegal constructor'});
  }
  assert.throws(() => new MLGraphBuilder(Object.create(MLContext.prototype)), TypeError);
  assert.throws(() => Object.create(MLTensor.prototype).shape, TypeError);
  assert.throws(() => MLContext.prototype.opSupportLimits.call({}), TypeError);
  await assert.rejects(ML.prototype.createContext.call({}), TypeError);
});

// WB-90
test('patches globals when it is installed, and only then', async () => {
  const names = ['ML', 'MLContext', 'MLGraph', 'MLGraphBuilder', 'MLOperand', 'MLTensor'];
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
  for (const name of names) assert.equal(globalThis[name], undefined);
  const uninstall = install();
  try {
    for (const name of names) assert.equal(globalThis[name], reference[name]);
    const context = await navigator.ml.createContext();
    assert.ok(new globalThis.MLGraphBuilder(context));
  } finally {
    uninstall();
  }
  for (const name of names) assert.equal(name in globalThis, false);
  assert.deepEqual(Object.getOwnPropertyDescriptor(globalThis, 'navigator'), before);
  const scope = {navigator: {userAgent: 'test'}};
  install({}, scope);
  assert.equal(scope.navigator.userAgent, 'test');
  assert.ok(scope.navigator.ml instanceof ML);
});
