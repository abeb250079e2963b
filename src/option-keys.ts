// Every key that the options objects may have. Clients pass one object for both purposes, so neither list's keys are
// misspellings in the other place.

export const sessionOptionKeys = [
  'executionProviders',
  'intraOpNumThreads',
  'interOpNumThreads',
  'freeDimensionOverrides',
  'graphOptimizationLevel',
  'enableCpuMemArena',
  'enableMemPattern',
  'executionMode',
  'optimizedModelFilePath',
  'enableProfiling',
  'profileFilePrefix',
  'logId',
  'logSeverityLevel',
  'logVerbosityLevel',
  'preferredOutputLocation',
  'enableGraphCapture',
  'extra',
  'externalData',
  'providerFallback',
  'float32MatmulPrecision',
  'memoryLimit',
  'modelCacheDir',
  'signal',
] as const;

export const runOptionKeys = [
  'logSeverityLevel',
  'logVerbosityLevel',
  'terminate',
  'tag',
  'extra',
  'signal',
  'timeout',
] as const;
