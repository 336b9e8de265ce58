// Writes small models in ONNX's wire format, as far as the tests need it.

const encoder = new TextEncoder();

function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 128n) return [...bytes, Number(rest)];
    bytes.push(Number(rest & 127n) | 128);
  }
}

// One field: a number, or a text or message with its length in front.
function field(number, value) {
  if (typeof value === 'number') return [...varint(number << 3), ...varint(value)];
  const bytes = typeof value === 'string' ? [...encoder.encode(value)] : value;
  return [...varint((number << 3) | 2), ...varint(bytes.length), ...bytes];
}

const NUMBERS = {
  float32: 1, uint8: 2, int8: 3, uint16: 4, int16: 5, int32: 6, int64: 7, string: 8, bool: 9,
  float16: 10, float64: 11, uint32: 12, uint64: 13, uint4: 21, int4: 22,
};

// {name, type, shape}: a dimension is a size, a name, or '' for one that is not known.
function valueInfo({name, type, shape}) {
  const dims = shape.flatMap((dim) =>
    field(1, typeof dim === 'number' ? field(1, dim) : dim === '' ? [] : field(2, dim)),
  );
  const tensor = [...field(1, NUMBERS[type]), ...field(2, dims)];
  return [...field(1, name), ...field(2, field(1, tensor))];
}

// {op, inputs, outputs, name}
function node({op, inputs, outputs, name = ''}) {
  return [
    ...inputs.flatMap((input) => field(1, input)),
    ...outputs.flatMap((output) => field(2, output)),
    ...field(3, name),
    ...field(4, op),
  ];
}

// {name, dims, file}: floats that lie in a file beside the model.
function externalFloats({name, dims, file}) {
  const EXTERNAL = 1;
  const location = [...field(1, 'location'), ...field(2, file)];
  return [
    ...dims.flatMap((dim) => field(1, dim)),
    ...field(2, NUMBERS.float32),
    ...field(8, name),
    ...field(13, location),
    ...field(14, EXTERNAL),
  ];
}

export function model({nodes, inputs, outputs, initializers = []}) {
  const graph = [
    ...nodes.flatMap((each) => field(1, node(each))),
    ...field(2, 'graph'),
    ...initializers.flatMap((each) => field(5, externalFloats(each))),
    ...inputs.flatMap((input) => field(11, valueInfo(input))),
    ...outputs.flatMap((output) => field(12, valueInfo(output))),
  ];
  const opset = [...field(1, ''), ...field(2, 21)];
  return Uint8Array.from([...field(1, 10), ...field(7, graph), ...field(8, opset)]);
}

// y = x of one type and any size.
export function identity(type) {
  return model({
    nodes: [{op: 'Identity', inputs: ['x'], outputs: ['y']}],
    inputs: [{name: 'x', type, shape: ['size']}],
    outputs: [{name: 'y', type, shape: ['size']}],
  });
}

// y = x + w of two floats each, with w in the file weights.bin.
export function externalSum() {
  const float = (name) => ({name, type: 'float32', shape: [2]});
  return model({
    nodes: [{op: 'Add', inputs: ['x', 'w'], outputs: ['y']}],
    inputs: [float('x')],
    outputs: [float('y')],
    initializers: [{name: 'w', dims: [2], file: 'weights.bin'}],
  });
}

// sum = a + b of two floats each, and product = a * b.
export function sumAndProduct() {
  const float = (name) => ({name, type: 'float32', shape: [2]});
  return model({
    nodes: [
      {op: 'Add', inputs: ['a', 'b'], outputs: ['sum'], name: 'adds "both"'},
      {op: 'Mul', inputs: ['a', 'b'], outputs: ['product'], name: 'multiplies'},
    ],
    inputs: [float('a'), float('b')],
    outputs: [float('sum'), float('product')],
  });
}

// y = a x b of [m, k] and [k, n] floats.
export function product(m, n, k) {
  const float = (name, shape) => ({name, type: 'float32', shape});
  return model({
    nodes: [{op: 'MatMul', inputs: ['a', 'b'], outputs: ['y']}],
    inputs: [float('a', [m, k]), float('b', [k, n])],
    outputs: [float('y', [m, n])],
  });
}

// y = a x w of [1, k] and [k, n] floats, with w in the file weights.bin.
export function externalProduct(n, k) {
  const float = (name, shape) => ({name, type: 'float32', shape});
  return model({
    nodes: [{op: 'MatMul', inputs: ['a', 'w'], outputs: ['y']}],
    inputs: [float('a', [1, k])],
    outputs: [float('y', [1, n])],
    initializers: [{name: 'w', dims: [k, n], file: 'weights.bin'}],
  });
}

// The same with w in the model.
export function constantProduct(n, k, w) {
  const float = (name, shape) => valueInfo({name, type: 'float32', shape});
  const tensor = [...field(1, k), ...field(1, n), ...field(2, NUMBERS.float32), ...field(8, 'w')];
  const bytes = new Uint8Array(w.buffer, w.byteOffset, w.byteLength);
  const rawData = [...varint((9 << 3) | 2), ...varint(bytes.length)];
  const initializer = [
    ...varint((5 << 3) | 2),
    ...varint(tensor.length + rawData.length + bytes.length),
    ...tensor,
    ...rawData,
  ];
  const rest = [
    ...field(1, node({op: 'MatMul', inputs: ['a', 'w'], outputs: ['y']})),
    ...field(2, 'graph'),
    ...field(11, float('a', [1, k])),
    ...field(12, float('y', [1, n])),
  ];
  const graphBytes = initializer.length + bytes.length + rest.length;
  return Buffer.concat([
    Uint8Array.from([...field(1, 10), ...field(8, [...field(1, ''), ...field(2, 21)])]),
    Uint8Array.from([...varint((7 << 3) | 2), ...varint(graphBytes), ...initializer]),
    bytes,
    Uint8Array.from(rest),
  ]);
}

// y = zeros of the shape `size`, which has one element.
export function zeros() {
  return model({
    nodes: [{op: 'ConstantOfShape', inputs: ['size'], outputs: ['y']}],
    inputs: [{name: 'size', type: 'int64', shape: [1]}],
    outputs: [{name: 'y', type: 'float32', shape: ['n']}],
  });
}

// y = a + b of `size` floats each.
export function addFloats(size) {
  const float = (name) => ({name, type: 'float32', shape: [size]});
  return model({
    nodes: [{op: 'Add', inputs: ['a', 'b'], outputs: ['y']}],
    inputs: [float('a'), float('b')],
    outputs: [float('y')],
  });
}
