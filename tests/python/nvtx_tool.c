// A tool for NVTX 3: writes the ranges that it hears of to the file that NVTX_TOOL_FILE names.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const char* message;
} Attributes;

typedef void (*Function)(void);
typedef struct {
  size_t size;
  int (*get_module_function_table)(uint32_t module, Function*** table, unsigned* size);
} Callbacks;

static FILE* file;
static uint64_t last_id;

static void Write(const char* what, const Attributes* a) {
  const int is_right = a->version == 3 && a->size == sizeof(Attributes) && a->color_type == 1 &&
                       a->message_type == 1;
  fprintf(file, "%s %08x %s\n", is_right ? what : "bad", a->color, a->message);
  fflush(file);
}
static uint64_t Start(const Attributes* a) {
  Write("start", a);
  return ++last_id;
}
static void End(uint64_t id) {
  fprintf(file, "end %d\n", (int)id);
  fflush(file);
}
static int Push(const Attributes* a) {
  Write("push", a);
  return 0;
}
static int Pop(void) {
  fprintf(file, "pop\n");
  fflush(file);
  return 0;
}

int InitializeInjectionNvtx2(const void* (*get_export_table)(uint32_t id)) {
  const Callbacks* callbacks = get_export_table(1);
  Function** table = NULL;
  unsigned size = 0;
  file = fopen(getenv("NVTX_TOOL_FILE"), "w");
  if (!file || !callbacks || !callbacks->get_module_function_table(1, &table, &size)) return 0;
  if (size < 16) return 0;
  *table[4] = (Function)Start;
  *table[7] = (Function)End;
  *table[8] = (Function)Push;
  *table[11] = (Function)Pop;
  return 1;
}
