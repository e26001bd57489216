/* A small libnvidia-ml.so.1: two GPUs as the library's C interface tells them.
   The second is old and tells little; -DWITHOUT_GPUS makes a driver without devices. */
#include <string.h>

typedef int status;
enum { OK = 0, UNSUPPORTED = 3, NOT_FOUND = 6 };
struct utilization { unsigned gpu, memory; };
struct memory { unsigned long long total, free, used; };
static int devices[2];
static int which(void *handle) { return (int)((int *)handle - devices); }

status nvmlInitWithFlags(unsigned flags) { (void)flags; return OK; }
status nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(status code) { (void)code; return "fake"; }
status nvmlSystemGetDriverVersion(char *text, unsigned size) { strncpy(text, "570.86.15", size); return OK; }
status nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 12080; return OK; }
#ifdef WITHOUT_GPUS
status nvmlDeviceGetCount_v2(unsigned *n) { *n = 0; return OK; }
#else
status nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return OK; }
#endif
status nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
  if (index > 1) return NOT_FOUND;
  *handle = &devices[index];
  return OK;
}
status nvmlDeviceGetUUID(void *handle, char *text, unsigned size) {
  strncpy(text, which(handle) ? "GPU-old" : "GPU-new", size);
  return OK;
}
status nvmlDeviceGetName(void *handle, char *text, unsigned size) {
  strncpy(text, which(handle) ? "Tesla K80" : "NVIDIA H100 80GB HBM3", size);
  return OK;
}
status nvmlDeviceGetMemoryInfo(void *handle, struct memory *found) {
  (void)handle;
  found->total = 85520809984ULL;
  found->used = 1073741824ULL;
  found->free = found->total - found->used;
  return OK;
}
#define ONLY_NEW if (which(handle)) return UNSUPPORTED
status nvmlDeviceGetMigMode(void *handle, unsigned *now, unsigned *later) { ONLY_NEW; *now = 0; *later = 1; return OK; }
status nvmlDeviceGetEccMode(void *handle, unsigned *now, unsigned *later) { ONLY_NEW; *now = 1; *later = 0; return OK; }
status nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *mw) { ONLY_NEW; *mw = 700000; return OK; }
status nvmlDeviceGetUtilizationRates(void *handle, struct utilization *found) {
  ONLY_NEW;
  found->gpu = 37;
  found->memory = 12;
  return OK;
}
status nvmlDeviceGetPowerUsage(void *handle, unsigned *mw) { ONLY_NEW; *mw = 312500; return OK; }
status nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *mj) { ONLY_NEW; *mj = 5000000500ULL; return OK; }
status nvmlDeviceGetClockInfo(void *handle, unsigned clock, unsigned *mhz) { ONLY_NEW; *mhz = clock == 1 ? 1980 : 2619; return OK; }
status nvmlDeviceGetTemperature(void *handle, unsigned sensor, unsigned *celsius) { (void)sensor; *celsius = which(handle) ? 0 : 61; return OK; }
/* The old name only: nvmlDeviceGetCurrentClocksEventReasons is not in this library. */
status nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *mask) { ONLY_NEW; *mask = 4; return OK; }
