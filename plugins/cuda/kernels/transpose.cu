// [rows, columns] of two bytes as [columns, rows]. A block does a tile of 32 x 32.

extern "C" __global__ void __launch_bounds__(256)
    transpose(const ushort* from, ushort* to, int rows, int columns) {
  __shared__ ushort tile[32][33];
  const int row0 = blockIdx.y * 32, column0 = blockIdx.x * 32;
  for (int i = threadIdx.y; i < 32; i += 8) {
    if (row0 + i < rows && column0 + threadIdx.x < columns) {
      tile[i][threadIdx.x] = from[(long)(row0 + i) * columns + column0 + threadIdx.x];
    }
  }
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8) {
    if (column0 + i < columns && row0 + threadIdx.x < rows) {
      to[(long)(column0 + i) * rows + row0 + threadIdx.x] = tile[threadIdx.x][i];
    }
  }
}
