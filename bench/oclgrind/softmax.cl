// Stage 02 in OpenCL, for Oclgrind: a work-group of 256 holds a row of at most 1024 columns in registers, and reduces it
// by a tree in local memory, since OpenCL 1.2 has no shuffles.

#define ITEMS 4
#define THREADS 256

float reduce(float value, int is_sum, local float* held) {
  const int me = get_local_id(0);
  held[me] = value;
  for (int half_ = THREADS / 2; half_ > 0; half_ /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me < half_) held[me] = is_sum ? held[me] + held[me + half_] : fmax(held[me], held[me + half_]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  value = held[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return value;
}

kernel void softmax_row(global const float* x, global float* y, const int cols) {
  local float held[THREADS];
  const size_t row = get_group_id(0);
  float value[ITEMS];
  float m = -INFINITY;
  for (int i = 0; i < ITEMS; ++i) {
    const int col = i * THREADS + get_local_id(0);
    value[i] = col < cols ? x[row * cols + col] : -INFINITY;
    m = fmax(m, value[i]);
  }
  m = reduce(m, 0, held);
  float d = 0.0f;
  for (int i = 0; i < ITEMS; ++i) {
    value[i] = exp(value[i] - m);
    d += value[i];
  }
  const float scale = 1.0f / reduce(d, 1, held);
  for (int i = 0; i < ITEMS; ++i) {
    const int col = i * THREADS + get_local_id(0);
    if (col < cols) y[row * cols + col] = value[i] * scale;
  }
}
