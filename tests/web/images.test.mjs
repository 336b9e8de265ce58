// Tensors from pixels and back, without a browser; pages.test.mjs has the other sources.
import assert from 'node:assert/strict';
import test from 'node:test';

import {load} from './package.mjs';

const {Tensor} = await load();

// Two pixels of RGBA, one under the other.
const IMAGE = {data: Uint8ClampedArray.of(0, 51, 102, 255, 153, 204, 255, 0), width: 1, height: 2};
const R = [0, 153];
const G = [51, 204];
const B = [102, 255];
const A = [255, 0];

const scaled = (values) => values.map((value) => Math.fround(value / 255));

// WB-23
test('has the documented defaults', async () => {
  const tensor = await Tensor.fromImage(IMAGE);
  assert.equal(tensor.type, 'float32');
  assert.deepEqual(tensor.dims, [1, 3, 2, 1]);
  assert.deepEqual([...tensor.data], scaled([...R, ...G, ...B]));
});

// WB-23
test('has the channels of the format, in its order and that of the layout', async () => {
  for (const [tensorFormat, channels] of Object.entries({
    RGB: [R, G, B], RGBA: [R, G, B, A], BGR: [B, G, R], RBG: [R, B, G],
  })) {
    const norm = {mean: 1};
    const planes = await Tensor.fromImage(IMAGE, {tensorFormat, norm});
    assert.deepEqual(planes.dims, [1, channels.length, 2, 1]);
    assert.deepEqual([...planes.data], channels.flat(), tensorFormat);
    const pixels = await Tensor.fromImage(IMAGE, {tensorFormat, norm, tensorLayout: 'NHWC'});
    assert.deepEqual(pixels.dims, [1, 2, 1, channels.length]);
    assert.deepEqual([...pixels.data], [0, 1].flatMap((i) => channels.map((values) => values[i])));
    for (const [tensor, tensorLayout] of [[planes, 'NCHW'], [pixels, 'NHWC']]) {
      const {data} = tensor.toImageData({format: tensorFormat, tensorLayout, norm});
      const opaque = (i) => (tensorFormat === 'RGBA' ? A[i] : 255);
      assert.deepEqual([...data], [0, 1].flatMap((i) => [R[i], G[i], B[i], opaque(i)]));
    }
  }
});

// WB-23: (pixel + bias) / mean, as onnxruntime-common documents it for single numbers and arrays.
test('normalizes', async () => {
  const first = async (norm) => {
    const {data} = await Tensor.fromImage(IMAGE, {norm});
    return [data[1], data[3], data[5]];
  };
  assert.deepEqual(await first({mean: 51, bias: 51}), [4, 5, 6]);
  assert.deepEqual(await first({mean: [51, 102, 51], bias: [0, 0, 51]}), [3, 2, 6]);
  assert.deepEqual(await first({bias: 102}), scaled([255, 306, 357]));
  assert.deepEqual(await first({mean: [51, 51, 51, 1]}), [3, 4, 5]);
});

// WB-23
test('makes bytes', async () => {
  const tensor = await Tensor.fromImage(IMAGE, {dataType: 'uint8'});
  assert.deepEqual(tensor.data, Uint8Array.of(...R, ...G, ...B));
  const {data} = tensor.toImageData();
  assert.deepEqual([...data.slice(0, 4)], [0, 51, 102, 255]);
  const clamped = await Tensor.fromImage(IMAGE, {dataType: 'uint8', norm: {bias: 100.5, mean: 1}});
  assert.deepEqual([...clamped.data.slice(0, 2)], [100, 254]);
});

// WB-23: the inverse as onnxruntime-common computes it, for one image with or without a batch.
test('makes pixels', () => {
  const tensor = new Tensor('float32', [1, 2, 3], [3, 1, 1]);
  const {data, width, height} = tensor.toImageData({norm: {mean: 10, bias: [1, 0, -1]}});
  assert.deepEqual([[...data], width, height], [[0, 20, 40, 255], 1, 1]);
  assert.deepEqual([...tensor.toImageData({format: 'BGR', norm: {mean: 10}}).data], [30, 20, 10, 255]);
});

// WB-23
test('says what it cannot convert', async () => {
  for (const [source, options] of [
    [{data: [1, 2, 3], width: 1, height: 1}],
    [7],
    [IMAGE, {tensorFormat: 'GRAY'}],
    [IMAGE, {tensorLayout: 'CHW'}],
    [IMAGE, {dataType: 'int8'}],
    [IMAGE, {norm: {mean: 'large'}}],
    [IMAGE, {norm: {mean: [1, 2]}}],
  ]) {
    await assert.rejects(Tensor.fromImage(source, options), TypeError, JSON.stringify(options));
  }
  await assert.rejects(Tensor.fromImage('a.png'), /only in a browser/);
  await assert.rejects(Tensor.fromImage(IMAGE, {resizedWidth: 2}), /only a browser can resize/);
  const gray = new Tensor('float32', [1], [1, 1, 1, 1]);
  assert.throws(() => gray.toImageData(), /RGB has 3 channels, the tensor \[1,1,1,1\] has 1/);
  assert.throws(() => new Tensor('float32', [1, 2, 3]).toImageData(), /of one image/);
  assert.throws(() => new Tensor('float32', new Float32Array(6), [2, 3, 1, 1]).toImageData(), /one im/);
  assert.throws(() => new Tensor('float32', [1, 2, 3], [3, 1, 1]).toDataURL(), /only a page/);
});
