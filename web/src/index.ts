// The package tenon-web with all its execution providers.
import {registerBackend} from '../common/index.js';
import {webnnBackend} from '../webnn/session.js';
import {proxied} from './proxy.js';

export * from './wasm.js';
export {default} from './wasm.js';

registerBackend('webnn', proxied('webnn', webnnBackend), 5);
