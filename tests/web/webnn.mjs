// Graphs of the reference of WebNN, for its tests.
import {load} from './package.mjs';

export const reference = await load('../webnn-reference/index');
const {createML, MLGraphBuilder} = reference;

const ARRAYS = {
  float32: Float32Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  int8: Int8Array,
  uint8: Uint8Array,
};

// The bits of float16, by a method of their own: the nearest of all its values.
const HALVES = Array.from({length: 0x7c00}, (_, bits) => {
  const exponent = bits >> 10;
  const mantissa = bits & 0x3ff;
  return exponent === 0 ? mantissa * 2 ** -24 : (1024 + mantissa) * 2 ** (exponent - 25);
});

export function halfBits(x) {
  if (Number.isNaN(x)) return 0x7e00;
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(x);
  if (magnitude >= 65520) return sign | 0x7c00;
  let [low, high] = [0, HALVES.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (HALVES[middle] <= magnitude) low = middle;
    else high = middle;
  }
  const below = magnitude - HALVES[low];
  const above = HALVES[high] - magnitude;
  return sign | (below < above || (below === above && low % 2 === 0) ? low : high);
}

export function halfOf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) return magnitude === 0x7c00 ? sign * Infinity : NaN;
  return sign * HALVES[magnitude];
}

// An array of the type, of numbers: strings stand for what JSON cannot say.
export function arrayOf(dataType, values) {
  const numbers = values.map((value) => (dataType.endsWith('64') ? BigInt(value) : Number(value)));
  if (dataType === 'float16') return Uint16Array.from(numbers, halfBits);
  return ARRAYS[dataType].from(numbers);
}

// The elements in a buffer, as numbers, or as bigints of the types of 64 bits.
export function elementsOf(dataType, buffer) {
  if (dataType === 'float16') return Array.from(new Uint16Array(buffer), halfOf);
  return Array.from(new ARRAYS[dataType](buffer));
}

// Runs a graph with the inputs {name: {dataType, shape, data}}, which `make` builds of the builder
// and the operands; the outputs in the same form.
export async function run(inputs, make, context = undefined) {
  context ??= await createML().createContext();
  const builder = new MLGraphBuilder(context);
  const operands = Object.fromEntries(
    Object.entries(inputs).map(([name, {dataType, shape}]) => [
      name,
      builder.input(name, {dataType, shape}),
    ]),
  );
  const outputs = make(builder, operands);
  const graph = await builder.build(outputs);
  const feeds = {};
  for (const [name, {dataType, shape, data}] of Object.entries(inputs)) {
    feeds[name] = await context.createTensor({dataType, shape, writable: true});
    context.writeTensor(feeds[name], arrayOf(dataType, data));
  }
  const fetches = {};
  for (const [name, {dataType, shape}] of Object.entries(outputs)) {
    fetches[name] = await context.createTensor({dataType, shape, readable: true});
  }
  context.dispatch(graph, feeds, fetches);
  const results = {};
  for (const [name, tensor] of Object.entries(fetches)) {
    const {dataType, shape} = tensor;
    const data = elementsOf(dataType, await context.readTensor(tensor));
    results[name] = {dataType, shape: [...shape], data};
  }
  return results;
}
