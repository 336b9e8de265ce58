// Sessions in a worker of their own, for env.wasm.proxy. What starts and asks the worker is loaded
// with the first of them.
import {type Backend, ProviderUnavailable} from '../common/backend.js';
import {env, Tensor} from '../common/index.js';
import {checkFlags} from './flags.js';
import type {ProxyClient} from './proxy-client.js';

let client: ProxyClient | undefined;

async function theClient(): Promise<ProxyClient> {
  const {ProxyClient} = await import('./proxy-client.js');
  return (client ??= new ProxyClient({env, Tensor, ProviderUnavailable}));
}

// The backend of the provider `name` in the worker while env.wasm.proxy is set, else `backend`.
export function proxied(name: string, backend: Backend): Backend {
  const chosen = async () => {
    if (!env.wasm.proxy) return backend;
    checkFlags();
    return (await theClient()).backend(name);
  };
  return {
    init: async (provider, entry) => (await chosen()).init(provider, entry),
    createInferenceSessionHandler: async (model, options) =>
      (await chosen()).createInferenceSessionHandler(model, options),
  };
}
