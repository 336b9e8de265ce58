// The size of the WebNN reference, and that it has no dependencies.
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';

import {build} from '../../web/node_modules/esbuild/lib/main.js';
import {PACKAGE} from './package.mjs';

const GREATEST_SIZE = 60_000; // bytes

// Bundles a module of the package: its size, and the files that are in it.
async function bundle(entry) {
  const {metafile, outputFiles} = await build({
    absWorkingDir: path.join(PACKAGE, 'dist'),
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    external: ['node:*'],
    metafile: true,
    write: false,
  });
  const inputs = Object.keys(metafile.inputs);
  return {size: outputFiles[0].contents.length, folders: inputs.map((file) => file.split('/')[0])};
}

// WB-93, WB-96
test('is small, and shares no code with the rest of the package', async () => {
  const {size, folders} = await bundle('webnn-reference/index.js');
  assert.ok(size <= GREATEST_SIZE, `${size} bytes`);
  assert.deepEqual([...new Set(folders)], ['webnn-reference']);
});

// WB-96
test('is no part of the main entry', async () => {
  const {folders} = await bundle('src/index.js');
  assert.ok(folders.includes('src'));
  assert.ok(!folders.includes('webnn-reference'));
});
