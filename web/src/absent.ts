// Providers that programs for onnxruntime-web may ask for and that are not here: their backends say
// why.
import type {Backend} from '../common/index.js';

export function absentBackend(reason: string): Backend {
  const refuse = async () => {
    throw new Error(reason);
  };
  return {init: refuse, createInferenceSessionHandler: refuse};
}
