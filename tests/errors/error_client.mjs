// The same in JavaScript: node error_client.mjs PACKAGES CASES. CASES is JSON, a list of cases with
// source, options, feeds and outputs. The messages are printed as JSON, with null for success.
import {createRequire} from 'node:module';
import {readFileSync} from 'node:fs';
import path from 'node:path';

const [packages, cases] = process.argv.slice(2);
const ort = createRequire(path.join(packages, 'index.js'))('onnxruntime-node');
const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  int64: BigInt64Array,
  bool: Uint8Array,
  string: Array,
};

function tensorOf({type, dims, values}) {
  const elements = type === 'int64' ? values.map(BigInt) : values;
  return new ort.Tensor(type, ARRAYS[type].from(elements), dims);
}

async function messageOf({source, is_path, options, feeds, outputs}) {
  try {
    const model = is_path ? source : readFileSync(source);
    const session = await ort.InferenceSession.create(model, {extra: options});
    if (feeds === null) return null;
    const tensors = Object.fromEntries(Object.entries(feeds).map(([k, v]) => [k, tensorOf(v)]));
    await session.run(tensors, outputs.length ? outputs : undefined);
    return null;
  } catch (error) {
    return error.message;
  }
}

const messages = [];
for (const one of JSON.parse(readFileSync(cases, 'utf8'))) messages.push(await messageOf(one));
console.log(JSON.stringify(messages));
