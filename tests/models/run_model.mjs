// node run_model.mjs PACKAGES: runs one model with onnxruntime-node. Stdin and stdout are JSON:
// {model, feeds: {name: {type, dims, data}}, outputs: [name]} gives {name: {type, dims, data}}, where
// data is the elements' bytes in base64.
import {createRequire} from 'node:module';
import {readFileSync, writeFileSync} from 'node:fs';
import path from 'node:path';

const ort = createRequire(path.join(process.argv[2], 'index.js'))('onnxruntime-node');
const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  uint8: Uint8Array,
  int32: Int32Array,
  int64: BigInt64Array,
};

function tensorOf({type, dims, data}) {
  const bytes = new Uint8Array(Buffer.from(data, 'base64'));
  return new ort.Tensor(type, new ARRAYS[type](bytes.buffer), dims);
}

function plain({type, dims, data}) {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return {type, dims, data: bytes.toString('base64')};
}

const mapValues = (object, change) =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));

const {model, feeds, outputs} = JSON.parse(readFileSync(0, 'utf8'));
const session = await ort.InferenceSession.create(model);
const results = await session.run(mapValues(feeds, tensorOf), outputs);
writeFileSync(1, JSON.stringify(mapValues(results, plain)));
