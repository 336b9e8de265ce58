// The package tenon-web with all its execution providers.
import {registerBackend} from '../common/index.js';
import {webnnBackend} from '../webnn/session.js';

export * from './wasm.js';
export {default} from './wasm.js';

registerBackend('webnn', webnnBackend, 5);
