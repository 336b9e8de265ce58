// Makes the npm packages tenon-web and tenon-common of the TypeScript in this folder and the modules
// of WebAssembly: node build.mjs FOLDER MODULE...; they are made in FOLDER/package and
// FOLDER/common.
import {execFileSync} from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

import {build} from './node_modules/esbuild/lib/main.js';

const WEB = path.dirname(fileURLToPath(import.meta.url));
const [folder, ...modules] = process.argv.slice(2).map((arg) => path.resolve(arg));
const manifest = JSON.parse(readFileSync(path.join(WEB, 'package.json'), 'utf8'));

// ---- JavaScript and declarations, a file for each source ----

// All of `sources` in `to`, with declarations for CommonJS (.d.cts) besides those of tsc.
function compile(to, sources) {
  const tsc = path.join(WEB, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '--project', WEB, '--outDir', to], {stdio: 'inherit'});
  for (const source of readdirSync(to)) {
    if (!sources.includes(source)) rmSync(path.join(to, source), {recursive: true});
  }
  for (const source of sources) {
    writeFileSync(path.join(to, source, 'package.json'), '{"type": "module"}\n');
    for (const name of readdirSync(path.join(to, source), {recursive: true})) {
      if (!name.endsWith('.d.ts')) continue;
      const file = path.join(to, source, name);
      const text = readFileSync(file, 'utf8').replaceAll(/(from '\.[^']*)\.js'/g, "$1.cjs'");
      writeFileSync(file.replace(/\.d\.ts$/, '.d.cts'), text);
    }
  }
}

// ---- modules ----

const FEATURES = [
  'simd', 'relaxed-simd', 'threads', 'bulk-memory', 'mutable-globals', 'exception-handling',
  'sign-ext', 'nontrapping-float-to-int', 'multivalue', 'reference-types',
];
const SIMPLIFY = [
  'precompute', 'optimize-instructions', 'remove-unused-brs', 'merge-blocks', 'rse', 'vacuum',
];
// What the linker lacks: functions with the same code, as templates have for types of one size, become
// one; parameters that always have one value become constants; and less code between the instructions
// of loops, which stay. (local-cse and merge-similar-functions would make loops slower.)
const PASSES = [
  'duplicate-function-elimination', 'dce', ...SIMPLIFY, 'simplify-locals-nostructure',
  'coalesce-locals', 'reorder-locals', 'vacuum', 'duplicate-function-elimination', 'dae-optimizing',
  ...SIMPLIFY, 'duplicate-function-elimination', 'remove-unused-module-elements',
  'reorder-functions',
];

// Copies a module, smaller than it was linked. The result is kept beside it for later packages.
function packModule(module, to) {
  const packed = module.replace(/\.wasm$/, '.packed.wasm');
  const changed = (each) => statSync(each).mtimeMs;
  const sources = [module, fileURLToPath(import.meta.url)]; // this file has the passes
  if (!existsSync(packed) || sources.some((each) => changed(each) > changed(packed))) {
    const optimizer = path.join(WEB, 'node_modules/binaryen/bin/wasm-opt');
    const flags = [...FEATURES.map((each) => `--enable-${each}`), ...PASSES.map((each) => `--${each}`)];
    execFileSync(process.execPath, [optimizer, ...flags, module, '-o', packed], {stdio: 'inherit'});
  }
  cpSync(packed, to);
}

// ---- bundles ----

// A bundle lies beside the modules of WebAssembly, in the folder above the sources, and beside the
// bundles of workers, which are called PREFIX.NAME.min.mjs. Bundlers of applications find files by
// this very form of an address.
function withSiblings(text, prefix) {
  return text.replaceAll(
    /new URL\('\.\.?\/([^']*?)(\.js)?', import\.meta\.url\)/g,
    (_, name, isCode) =>
      `new URL('./${isCode ? `${prefix}.${name}.min.mjs` : name}', import.meta.url)`,
  );
}

// A part that is loaded on request is such a bundle, too. A script names it by its address: the base
// of a script of another origin is unknown.
function withParts(text, prefix, isScript) {
  return text.replaceAll(/import\('\.\/([^']*)\.js'\)/g, (_, name) => {
    const file = `'./${prefix}.${name}.min.mjs'`;
    return isScript
      ? `import(/* webpackIgnore: true */ /* @vite-ignore */ new URL(${file}, import.meta.url).href)`
      : `import(${file})`;
  });
}

// `isNode` of host.ts as a global name, which esbuild replaces by its value.
function withGlobalIsNode(text) {
  return text
    .replace(/export const isNode =[^;]*;/, '')
    .replace(/(import \{[^}]*)\bisNode\b,?/, '$1');
}

const adapt = (prefix, change = (text) => text) => ({
  name: 'adapt',
  setup({onLoad}) {
    onLoad({filter: /\/web\/(common|src|webnn)\/[^/]*\.ts$/}, ({path: file}) => ({
      contents: change(withSiblings(readFileSync(file, 'utf8'), prefix)),
      loader: 'ts',
    }));
  },
});

// Names no module of Node.js, which bundlers of applications would look for.
const withoutNode = {
  name: 'without-node',
  setup({onLoad, onResolve}) {
    onResolve({filter: /^node:/}, ({path: name}) => ({path: name, namespace: 'absent'}));
    onLoad({filter: /.*/, namespace: 'absent'}, () => ({contents: 'export {}'}));
  },
};

// Bundles for browsers are in no Node.js, even where a page has its globals.
const forBrowsers = (isScript) => ({
  plugins: [adapt('ort', (text) => withGlobalIsNode(withParts(text, 'ort', isScript))), withoutNode],
  external: ['./ort.*.min.mjs'],
  define: {isNode: 'false', ...(isScript && {'import.meta.url': 'scriptUrl'})},
});

const banner = `/* ${manifest.name} ${manifest.version}, MIT License */`;

const COMMON = {
  absWorkingDir: WEB,
  bundle: true,
  target: 'es2022',
  sourcemap: true,
  sourcesContent: true,
  logLevel: 'warning',
};

// Where a script of CommonJS or of a script tag is.
const SCRIPT_URL =
  "const scriptUrl = typeof document === 'undefined' ? globalThis.location?.href : " +
  '(document.currentScript?.src || document.baseURI);';
const FILE_URL = "const scriptUrl = require('node:url').pathToFileURL(__filename).href;";

// The kinds of bundles: for browsers as modules and as scripts, which CommonJS can load too, and
// for Node.js.
const KINDS = {
  '.mjs': {...forBrowsers(false), format: 'esm', banner: {js: banner}},
  '.js': {
    ...forBrowsers(true),
    format: 'iife',
    globalName: 'ort',
    banner: {js: `${banner}\n"use strict";var ort=(()=>{${SCRIPT_URL}`},
    footer: {
      js: 'return ort})();if(typeof module==="object"&&typeof exports==="object")module.exports=ort;',
    },
  },
  '.node.mjs': {format: 'esm', platform: 'node', plugins: [adapt('ort.node')], banner: {js: banner}},
  '.node.js': {
    format: 'cjs',
    platform: 'node',
    plugins: [adapt('ort.node')],
    define: {'import.meta.url': 'scriptUrl'},
    banner: {js: `${banner}\n${FILE_URL}`},
  },
};

async function bundle(entry, outfile, kind, minify) {
  await build({...COMMON, ...KINDS[kind], entryPoints: [entry], outfile, minify});
}

// A module that is another one under a second name.
function alias(file, target) {
  writeFileSync(file, `export * from '${target}';\nexport {default} from '${target}';\n`);
}

async function packageWeb(to) {
  const dist = path.join(to, 'dist');
  const file = (name) => path.join(dist, name);
  rmSync(to, {recursive: true, force: true});
  mkdirSync(dist, {recursive: true});
  for (const name of ['package.json', 'README.md', '../LICENSE']) {
    cpSync(path.join(WEB, name), path.join(to, path.basename(name)));
  }
  compile(dist, ['common', 'src', 'webnn', 'webnn-reference']);
  for (const module of modules) packModule(module, file(path.basename(module)));
  const bundles = [];
  // The names are those of onnxruntime-web's files.
  for (const [entry, name] of [['src/index.ts', 'ort'], ['src/wasm.ts', 'ort.wasm']]) {
    for (const kind of ['.mjs', '.js']) {
      bundles.push(bundle(entry, file(`${name}${kind}`), kind, false));
      bundles.push(bundle(entry, file(`${name}.min${kind}`), kind, true));
    }
  }
  for (const worker of ['proxy-worker', 'thread-worker']) {
    bundles.push(bundle(`src/${worker}.ts`, file(`ort.${worker}.min.mjs`), '.mjs', true));
    bundles.push(bundle(`src/${worker}.ts`, file(`ort.node.${worker}.min.mjs`), '.node.mjs', true));
  }
  bundles.push(bundle('src/proxy-client.ts', file('ort.proxy-client.min.mjs'), '.mjs', true));
  for (const kind of ['.mjs', '.js']) {
    bundles.push(bundle('src/index.ts', file(`ort.node.min${kind}`), `.node${kind}`, true));
    const reference = file(`webnn-reference${kind.replace('.js', '.cjs')}`);
    bundles.push(bundle('webnn-reference/index.ts', reference, `.node${kind}`, true));
  }
  await Promise.all(bundles);
  // For applications that copy or load these files of onnxruntime-web by their names.
  for (const kind of ['', '.jsep', '.jspi', '.asyncify']) {
    cpSync(file('tenon.wasm'), file(`ort-wasm-simd-threaded${kind}.wasm`));
    alias(file(`ort-wasm-simd-threaded${kind}.mjs`), './ort.wasm.min.mjs');
  }
  alias(file('ort.bundle.min.mjs'), './ort.min.mjs');
  alias(file('ort.wasm.bundle.min.mjs'), './ort.wasm.min.mjs');
  for (const name of ['all', 'webgpu', 'jspi', 'webgl']) {
    alias(file(`ort.${name}.mjs`), './ort.mjs');
    alias(file(`ort.${name}.min.mjs`), './ort.min.mjs');
    alias(file(`ort.${name}.bundle.min.mjs`), './ort.min.mjs');
    cpSync(file('ort.js'), file(`ort.${name}.js`));
    cpSync(file('ort.min.js'), file(`ort.${name}.min.js`));
  }
}

async function packageCommon(to) {
  const dist = path.join(to, 'dist');
  rmSync(to, {recursive: true, force: true});
  mkdirSync(dist, {recursive: true});
  cpSync(path.join(WEB, '../LICENSE'), path.join(to, 'LICENSE'));
  compile(dist, ['common']);
  for (const [format, extension] of [['esm', 'mjs'], ['cjs', 'cjs']]) {
    const outfile = path.join(dist, `index.${extension}`);
    await build({...COMMON, entryPoints: ['common/index.ts'], outfile, format});
  }
  const {version, license} = manifest;
  const types = (kind) => ({
    types: `./dist/common/index.d.${kind === 'import' ? '' : 'c'}ts`,
    default: `./dist/index.${kind === 'import' ? 'mjs' : 'cjs'}`,
  });
  const common = {
    name: 'tenon-common',
    version,
    description: 'The API of tenon-web and onnxruntime-common, without a runtime',
    license,
    main: './dist/index.cjs',
    module: './dist/index.mjs',
    types: './dist/common/index.d.ts',
    exports: {'.': {import: types('import'), require: types('require')}},
    files: ['dist', '!dist/common/**/*.js'],
    engines: manifest.engines,
  };
  writeFileSync(path.join(to, 'package.json'), `${JSON.stringify(common, null, 2)}\n`);
}

await packageWeb(path.join(folder, 'package'));
await packageCommon(path.join(folder, 'common'));
