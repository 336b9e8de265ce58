// Loads and runs models by the lines of a script, and prints the library's message for each:
//   error_client SCRIPT
// "case" begins a case, "go" ends it. In between:
//   model FILE                       loaded as bytes
//   path FILE                        loaded as a file
//   option KEY VALUE, run KEY VALUE  config entries
//   feed NAME TYPE RANK DIM... FILE  the elements as bytes; each string ends with a null fetch NAME
//   load                             the model is only loaded
//   stop                             the run is terminated
// Fields are separated by tabs. For each case one line is printed: the code, a tab, and the
// message; before it a line "log" and the text for each line that the library logs.
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8, MOST_DIMS = 8 };

static const OrtApi* api;

typedef struct Case {
  OrtSessionOptions* options;
  OrtRunOptions* run;
  void* model;
  size_t model_size;
  char path[512];
  const char* feed_names[MOST];
  OrtValue* feeds[MOST];
  void* feed_data[MOST];
  size_t feed_count;
  const char* fetch_names[MOST];
  size_t fetch_count;
  int loads_only;
} Case;

static void Stop(const char* what) {
  fprintf(stderr, "error_client: %s\n", what);
  exit(2);
}

// For calls that must not fail.
static void Must(OrtStatus* status) {
  if (status != NULL) Stop(api->GetErrorMessage(status));
}

static void ORT_API_CALL Log(void* param, OrtLoggingLevel severity, const char* category,
                             const char* logid, const char* location, const char* message) {
  (void)param, (void)severity, (void)category, (void)logid, (void)location;
  printf("log\t%s\n", message);
}

static char* Copy(const char* text) {
  char* const copy = malloc(strlen(text) + 1);
  return copy == NULL ? NULL : strcpy(copy, text);
}

static void* ReadFile(const char* path, size_t* size) {
  FILE* const file = fopen(path, "rb");
  if (file == NULL) Stop(path);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  void* const bytes = malloc(*size + 1);
  if (bytes == NULL || fread(bytes, 1, *size, file) != *size) Stop(path);
  fclose(file);
  return bytes;
}

static void AddFeed(Case* c, char** fields) {
  const ONNXTensorElementDataType type = (ONNXTensorElementDataType)atoi(fields[2]);
  const size_t rank = (size_t)atoi(fields[3]);
  int64_t dims[MOST_DIMS];
  for (size_t i = 0; i < rank; ++i) dims[i] = atoll(fields[4 + i]);
  size_t size = 0;
  void* const data = ReadFile(fields[4 + rank], &size);
  const size_t at = c->feed_count++;
  c->feed_names[at] = Copy(fields[1]);
  c->feed_data[at] = data;
  if (type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    OrtMemoryInfo* cpu = NULL;
    Must(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
    Must(api->CreateTensorWithDataAsOrtValue(cpu, data, size, dims, rank, type, &c->feeds[at]));
    api->ReleaseMemoryInfo(cpu);
    return;
  }
  OrtAllocator* allocator = NULL;
  Must(api->GetAllocatorWithDefaultOptions(&allocator));
  Must(api->CreateTensorAsOrtValue(allocator, dims, rank, type, &c->feeds[at]));
  const char* text = data;
  for (size_t i = 0; text < (const char*)data + size; ++i, text += strlen(text) + 1) {
    Must(api->FillStringTensorElement(c->feeds[at], text, i));
  }
}

static OrtStatus* RunAll(const Case* c, OrtSession* session) {
  OrtValue* outputs[MOST] = {NULL};
  OrtStatus* const status =
      api->Run(session, c->run, c->feed_names, (const OrtValue* const*)c->feeds, c->feed_count,
               c->fetch_names, c->fetch_count, outputs);
  for (size_t i = 0; i < c->fetch_count; ++i) api->ReleaseValue(outputs[i]);
  return status;
}

static OrtStatus* LoadAndRun(const Case* c, OrtEnv* env) {
  OrtSession* session = NULL;
  OrtStatus* status = c->path[0] != '\0' ? api->CreateSession(env, c->path, c->options, &session)
                                         : api->CreateSessionFromArray(env, c->model, c->model_size,
                                                                       c->options, &session);
  if (status != NULL || c->loads_only) return status;
  status = RunAll(c, session);
  api->ReleaseSession(session);
  return status;
}

static void Begin(Case* c) {
  memset(c, 0, sizeof(*c));
  Must(api->CreateSessionOptions(&c->options));
  Must(api->CreateRunOptions(&c->run));
}

static void End(Case* c, OrtEnv* env) {
  OrtStatus* const status = LoadAndRun(c, env);
  printf("%d\t%s\n", status == NULL ? 0 : (int)api->GetErrorCode(status),
         status == NULL ? "" : api->GetErrorMessage(status));
  api->ReleaseStatus(status);
  for (size_t i = 0; i < c->feed_count; ++i) {
    api->ReleaseValue(c->feeds[i]);
    free(c->feed_data[i]);
    free((void*)c->feed_names[i]);
  }
  for (size_t i = 0; i < c->fetch_count; ++i) free((void*)c->fetch_names[i]);
  free(c->model);
  api->ReleaseSessionOptions(c->options);
  api->ReleaseRunOptions(c->run);
}

static void Obey(Case* c, char** fields, OrtEnv* env) {
  const char* const word = fields[0];
  if (strcmp(word, "case") == 0) {
    Begin(c);
  } else if (strcmp(word, "model") == 0) {
    c->model = ReadFile(fields[1], &c->model_size);
  } else if (strcmp(word, "path") == 0) {
    snprintf(c->path, sizeof(c->path), "%s", fields[1]);
  } else if (strcmp(word, "option") == 0) {
    Must(api->AddSessionConfigEntry(c->options, fields[1], fields[2]));
  } else if (strcmp(word, "run") == 0) {
    Must(api->AddRunConfigEntry(c->run, fields[1], fields[2]));
  } else if (strcmp(word, "feed") == 0) {
    AddFeed(c, fields);
  } else if (strcmp(word, "fetch") == 0) {
    c->fetch_names[c->fetch_count++] = Copy(fields[1]);
  } else if (strcmp(word, "load") == 0) {
    c->loads_only = 1;
  } else if (strcmp(word, "stop") == 0) {
    Must(api->RunOptionsSetTerminate(c->run));
  } else if (strcmp(word, "go") == 0) {
    End(c, env);
  } else {
    Stop(word);
  }
}

int main(int count, char** arguments) {
  FILE* const script = count == 2 ? fopen(arguments[1], "r") : NULL;
  if (script == NULL) Stop("expected a script");
  api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  OrtEnv* env = NULL;
  Must(api->CreateEnvWithCustomLogger(Log, NULL, ORT_LOGGING_LEVEL_WARNING, "errors", &env));
  Case c;
  char line[1024];
  while (fgets(line, sizeof(line), script) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    char* fields[MOST_DIMS + 8] = {NULL};
    size_t i = 0;
    for (char* field = strtok(line, "\t"); field != NULL; field = strtok(NULL, "\t")) {
      if (i < sizeof(fields) / sizeof(fields[0])) fields[i++] = field;
    }
    Obey(&c, fields, env);
  }
  fclose(script);
  api->ReleaseEnv(env);
  return 0;
}
