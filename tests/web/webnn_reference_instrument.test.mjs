// The instrument, which counts what is done with contexts of WebNN.
import assert from 'node:assert/strict';
import test from 'node:test';

import {reference} from './webnn.mjs';

const {createML, instrument, MLGraphBuilder} = reference;
const VECTOR = {dataType: 'float32', shape: [3]};

async function adding(context, Builder = MLGraphBuilder) {
  const builder = new Builder(context);
  const sum = builder.add(builder.input('a', VECTOR), builder.input('b', VECTOR));
  return builder.build({sum});
}

// WB-95
test('counts tensors, bytes, reads, writes and dispatches', async () => {
  const ml = createML();
  const counts = instrument(ml);
  const context = await ml.createContext();
  const graph = await adding(context);
  const make = () => context.createTensor({...VECTOR, readable: true, writable: true});
  const [a, b, sum, other] = [await make(), await make(), await make(), await make()];
  const half = await context.createConstantTensor(
    {dataType: 'float16', shape: [2, 2]},
    new Uint8Array(8),
  );
  assert.deepEqual([counts.contexts, counts.created, counts.live, counts.liveBytes], [1, 5, 5, 56]);
  context.writeTensor(a, Float32Array.of(1, 2, 3));
  context.writeTensor(b, Float32Array.of(4, 5, 6));
  for (const inputs of [
    {a, b},
    {b, a},
    {a, b: other},
    {a, b},
  ]) {
    context.dispatch(graph, inputs, {sum});
  }
  const result = new Float32Array(await context.readTensor(sum));
  assert.deepEqual(result, Float32Array.of(5, 7, 9));
  assert.deepEqual(
    counts.dispatches.map(({graph: number, signature}) => `${number} ${signature}`),
    ['1 a=2,b=3;sum=4', '1 a=2,b=3;sum=4', '1 a=2,b=5;sum=4', '1 a=2,b=3;sum=4'],
  );
  assert.deepEqual([counts.rebinds, counts.signatures(), counts.signatures(1)], [2, 2, 2]);
  assert.deepEqual([counts.writes, counts.writeBytes], [2, 24]);
  assert.deepEqual([counts.reads, counts.readBytes], [1, 12]);
  half.destroy();
  a.destroy();
  a.destroy();
  assert.deepEqual([counts.destroyed, counts.live, counts.liveBytes], [2, 3, 36]);
  counts.reset();
  assert.deepEqual([counts.created, counts.live, counts.dispatches.length], [3, 3, 0]);
});

// WB-95
test('does not count what fails', async () => {
  const ml = createML({faults: {createTensor: 2, writeTensor: 1}});
  const counts = instrument(ml);
  const context = await ml.createContext();
  const tensor = await context.createTensor({...VECTOR, writable: true});
  await assert.rejects(context.createTensor(VECTOR));
  await assert.rejects(context.createTensor({dataType: 'float32', shape: [0]}), TypeError);
  assert.throws(() => context.writeTensor(tensor, new Float32Array(3)));
  assert.throws(() => context.dispatch({}, {}, {}), TypeError);
  assert.deepEqual([counts.created, counts.writes, counts.dispatches.length], [1, 0, 0]);
});

// WB-95
test('counts tensors of a lost context as destroyed', async () => {
  const ml = createML();
  const counts = instrument(ml);
  const context = await ml.createContext();
  const tensor = await context.createTensor(VECTOR);
  await context.createTensor(VECTOR);
  context.destroy();
  await context.lost;
  await new Promise(setImmediate);
  assert.deepEqual([counts.created, counts.destroyed, counts.liveBytes], [2, 2, 0]);
  tensor.destroy();
  assert.equal(counts.destroyed, 2);
});

// WB-95
test('watches single contexts, and counts builds', async () => {
  const ml = createML();
  const [watched, unwatched] = [await ml.createContext(), await ml.createContext()];
  const counts = instrument(watched);
  const Builder = counts.builder(MLGraphBuilder);
  await adding(watched, Builder);
  await adding(watched);
  await watched.createTensor(VECTOR);
  await unwatched.createTensor(VECTOR);
  assert.deepEqual([counts.contexts, counts.created, counts.builds], [1, 1, 1]);
});

// WB-95
test('works on any object with the methods of WebNN', async () => {
  const calls = [];
  class Tensor {
    dataType = 'int8';
    shape = [5];
    destroy() {
      calls.push('destroy');
    }
  }
  class Context {
    lost = new Promise(() => undefined);
    async createTensor() {
      return new Tensor();
    }
    async createConstantTensor() {
      return new Tensor();
    }
    async readTensor() {
      calls.push('read');
      return 'bytes';
    }
    writeTensor() {
      calls.push('write');
    }
    dispatch() {
      calls.push('dispatch');
    }
  }
  const context = new Context();
  const counts = instrument(context);
  const tensor = await context.createTensor({});
  context.writeTensor(tensor, 0);
  context.dispatch({}, {}, {y: tensor});
  assert.equal(await context.readTensor(tensor), 'bytes');
  tensor.destroy();
  assert.deepEqual(calls, ['write', 'dispatch', 'read', 'destroy']);
  assert.deepEqual([counts.readBytes, counts.writeBytes, counts.live], [5, 5, 0]);
  assert.deepEqual(counts.dispatches, [{graph: 1, signature: ';y=2'}]);
});
