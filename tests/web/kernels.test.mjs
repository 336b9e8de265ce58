// The inner loops of matrix products and convolutions in both modules, as the compiler made them.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync} from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import {fileURLToPath} from 'node:url';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const FOLDERS = {
  fixed: 'build/wasm/src/kernels/CMakeFiles/tenon_kernels.dir',
  relaxed: 'build/wasm/web/CMakeFiles/tenon_relaxed_kernels.dir/__/src/kernels',
};
const SOURCES = [
  'gemm/gemm', 'conv/conv_blocked', 'conv/conv_depthwise', 'conv/conv_grouped', 'conv/conv_planar',
  'conv/conv_stem', 'conv/conv_winograd',
];
const objectOf = (kind, source) => path.join(ROOT, FOLDERS[kind], `${source}.cpp.obj`);
const skip = !existsSync(objectOf('relaxed', 'gemm/gemm')) && 'needs the build: ./dev build wasm';

// The disassembler of LLVM 19 knows the instructions of relaxed SIMD by their bytes alone.
const RELAXED_MADD = 'fd 85 02';
const ARITHMETIC = ['f32x4.add', 'f32x4.relaxed_madd'];

// An object's instructions by the names of its functions: [operation, operand].
function disassemble(object) {
  const text = execFileSync('llvm-objdump-19', ['--disassemble', '--demangle', object], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  const functions = new Map();
  let instructions = [];
  for (const line of text.split('\n')) {
    const [, name] = /^[0-9a-f]+ <(.*)>:$/.exec(line) ?? [];
    const [, bytes, operation, operand] =
      /^\s*[0-9a-f]+: ((?:[0-9a-f]{2} ?)+)\s+(\S+)\s*(\S*)/.exec(line) ?? [];
    if (name !== undefined) functions.set(name, (instructions = []));
    else if (bytes?.startsWith(RELAXED_MADD)) instructions.push(['f32x4.relaxed_madd', '']);
    else if (operation !== undefined) instructions.push([operation, operand]);
  }
  return functions;
}

// The loops without loops within: how often each operation occurs, and how many sums the loop
// carries, that is local variables which a pass reads before it sets them to the result of an
// addition.
function* innermostLoops(instructions) {
  const open = [];
  for (const [i, [operation, operand]] of instructions.entries()) {
    if (['block', 'loop', 'if', 'try'].includes(operation)) {
      if (operation === 'loop') open.forEach((each) => (each.isInnermost = false));
      open.push({operation, counts: {}, locals: new Map(), isInnermost: operation === 'loop'});
      continue;
    }
    if (operation === 'end') {
      const {counts, locals, isInnermost} = open.pop() ?? {};
      if (isInnermost) {
        const sums = [...locals.values()].filter(({isReadFirst, isSum}) => isReadFirst && isSum);
        yield {counts, sums: sums.length};
      }
      continue;
    }
    for (const {counts, locals} of open) {
      counts[operation] = (counts[operation] ?? 0) + 1;
      if (!operation.startsWith('local.')) continue;
      const isRead = operation === 'local.get';
      if (!locals.has(operand)) locals.set(operand, {isReadFirst: isRead, isSum: false});
      if (!isRead && ARITHMETIC.includes(instructions[i - 1][0])) locals.get(operand).isSum = true;
    }
  }
}

const productsOf = ({'f32x4.mul': products = 0, 'f32x4.relaxed_madd': fused = 0}) =>
  products + fused;

// The loops that add up products, with the names of their functions.
function sumLoops(kind, source) {
  const loops = [];
  for (const [name, instructions] of disassemble(objectOf(kind, source))) {
    for (const loop of innermostLoops(instructions)) {
      if (loop.sums > 0 && productsOf(loop.counts) > 0) loops.push({name, ...loop});
    }
  }
  return loops;
}

const MOST_SUMS = 8;
const ROWS = [1, 2, 3, 4];
const VECTORS = [1, 2];

for (const kind of Object.keys(FOLDERS)) {
  for (const source of SOURCES) {
    // WB-38
    test(`${kind} ${source}: no loop carries more than ${MOST_SUMS} sums`, {skip}, () => {
      const loops = sumLoops(kind, source);
      assert.ok(loops.length > 0);
      const most = Math.max(...loops.map(({sums}) => sums));
      const names = loops.filter(({sums}) => sums === most).map(({name}) => name);
      assert.equal(most, MOST_SUMS, names.join('\n'));
    });
  }

  // WB-38
  test(`${kind}: the tiles of matrix products`, {skip}, () => {
    const loops = sumLoops(kind, 'gemm/gemm');
    const tiles = ROWS.flatMap((rows) => VECTORS.map((vectors) => [rows, vectors]));
    for (const [rows, vectors] of tiles) {
      const name = `RunTile<float, ${rows}ul, ${vectors}ul, false>`;
      const own = loops.filter((loop) => loop.name.includes(name));
      assert.ok(own.length > 0, name);
      // The longest loop makes two steps down the depth at once.
      const most = Math.max(...own.map(({counts}) => productsOf(counts)));
      assert.ok(most >= 2 * rows * vectors, `${name}: ${most} products`);
    }
  });
}

// WB-38
test('relaxed: products and sums are one instruction', {skip}, () => {
  for (const source of SOURCES) {
    const apart = sumLoops('relaxed', source).filter(({counts}) => counts['f32x4.mul'] > 0);
    // Activations are functions of single elements, the same in both modules.
    const names = apart.map(({name}) => name);
    assert.deepEqual(names.filter((name) => !name.includes('GemmTask::RunBlock')), [], source);
  }
  const fused = sumLoops('fixed', 'gemm/gemm').filter(
    ({counts}) => counts['f32x4.relaxed_madd'] > 0,
  );
  assert.deepEqual(fused, []);
});
