// Outputs that stay on the device: tensors of the package that the application uses.
import {Tensor} from '../common/index.js';
import type {NumericType} from '../common/tensor.js';
import type {CoreValue} from './bound-graph.js';
import {newArray} from './data-types.js';
import type {OwnedTensor} from './tensor-cache.js';
import type {Transfer} from './transfer.js';

// For tensors that were dropped without dispose().
const dropped = new FinalizationRegistry<OwnedTensor>((owned) =>
  owned.cache.destroyLent(owned),
);

export function lentTensor(owned: OwnedTensor, value: CoreValue, transfer: Transfer): Tensor {
  const {type} = value;
  const token = {};
  const tensor = Tensor.fromMLTensor(owned.tensor, {
    dataType: type as Tensor.MLTensorDataTypes,
    dims: [...value.dims],
    async download() {
      const data = newArray(type as NumericType, owned.byteLength);
      await transfer.read(owned.tensor, data);
      return data as Tensor.DataTypeMap[Tensor.MLTensorDataTypes];
    },
    dispose() {
      dropped.unregister(token);
      owned.dispose();
    },
  });
  dropped.register(tensor, owned, token);
  return tensor;
}
