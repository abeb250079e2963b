import { types } from 'node:util';

import type { InferenceSession as Common } from 'onnxruntime-common';

import { rangeError, typeError } from '../errors.js';
import type { NativeSessionOptions } from '../native.js';
import { readSimpleSessionOptions, runOptionKeys, sessionOptionKeys, type OwnSessionOptions } from './generated.js';
import { progressListener, type LoadProgress } from './load-progress.js';
import type { LogListener } from './log-message.js';
import { hearBy, processLevel } from './log-listeners.js';
import { warnMisspelt } from './option-names.js';
import { OptionReader } from './option-reader.js';
import { parseProviders, type ProviderOption } from './provider-options.js';
import { bytesOf, describe, isTypedArray } from '../tensor/tensor-data.js';

/** Options of `InferenceSession.create`: those of onnxruntime-node, and more. */
export interface SessionOptions extends Common.SessionOptions, OwnSessionOptions {
  executionProviders?: readonly (ProviderOption | Common.ExecutionProviderConfig)[];
}

const locations = ['cpu', 'cpu-pinned', 'texture', 'gpu-buffer', 'ml-tensor'] as const;
export type OutputLocation = (typeof locations)[number];

export interface ParsedSessionOptions {
  native: NativeSessionOptions;
  /** For every output, or by output name. */
  preferredOutputLocation: OutputLocation | ReadonlyMap<string, OutputLocation>;
  /** Entries of `externalData` whose bytes have to be read first. */
  blobs: { index: number; blob: Blob }[];
  signal: AbortSignal | undefined;
  onLog: LogListener | undefined;
  onProgress: ((progress: LoadProgress) => void) | undefined;
}

/** Checks and reads every option once. Throws TypeError and RangeError as onnxruntime-node does. */
export function parseSessionOptions(options: object): ParsedSessionOptions {
  const reader = new OptionReader(options, 'session options');

  const simple = readSimpleSessionOptions(reader);
  const { enableProfiling } = simple;
  if (enableProfiling && !reader.has('profileFilePrefix')) {
    reader.wrong('profileFilePrefix', 'a string when profiling is enabled', undefined);
  }
  const blobs: { index: number; blob: Blob }[] = [];
  const providers = reader.get('executionProviders');

  const native: NativeSessionOptions = {
    ...simple,
    providers: providers === undefined ? [] : parseProviders(providers),
    profileFilePrefix: enableProfiling ? reader.path('profileFilePrefix', '') : '',
    logSeverityLevel: reader.integer('logSeverityLevel', processLevel(), 4),
    freeDimensionOverrides: parseDimensions(reader),
    externalData: parseExternalData(reader, blobs),
    config: reader.config(),
  };
  const onLog = reader.callback<LogListener>('onLog');
  const log = { hear: onLog && hearBy(onLog, native.logId), level: native.logSeverityLevel };
  warnMisspelt(Object.keys(options), sessionOptionKeys, runOptionKeys, 'SessionOptions', log);
  return {
    native,
    preferredOutputLocation: parseLocation(reader),
    blobs,
    signal: reader.signal(),
    onLog,
    onProgress: progressListener(reader),
  };
}

function parseDimensions(reader: OptionReader): [string, number][] {
  const value = reader.get('freeDimensionOverrides');
  if (value === undefined || value === null) return [];
  if (typeof value !== 'object') reader.wrong('freeDimensionOverrides', 'an object', value);
  return Object.entries(value).map(([name, size]: [string, unknown]) => {
    if (typeof size !== 'number') reader.wrong(`freeDimensionOverrides.${name}`, 'a number', size);
    if (!Number.isSafeInteger(size) || size < 0) {
      throw rangeError(
        `Invalid session options: 'freeDimensionOverrides.${name}' must be a non-negative integer, got ${size}.`,
      );
    }
    return [name, size];
  });
}

function parseExternalData(
  reader: OptionReader,
  blobs: { index: number; blob: Blob }[],
): NativeSessionOptions['externalData'] {
  const value = reader.get('externalData');
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) reader.wrong('externalData', 'an array', value);
  return Array.from(value as unknown[], (entry, index) => {
    const key = `externalData[${index}]`;
    // A file on its own stands for itself under its own name.
    if (typeof entry === 'string') return { path: entry.replace(/^.*[/\\]/, ''), data: entry };
    if (typeof entry !== 'object' || entry === null) reader.wrong(key, 'a string or an object', entry);
    const { path, data } = entry as { path?: unknown; data?: unknown };
    if (typeof path !== 'string') reader.wrong(`${key}.path`, 'a string', path);
    if (typeof data === 'string') return { path, data };
    if (isTypedArray(data)) return { path, data: bytesOf(data) };
    if (types.isAnyArrayBuffer(data)) return { path, data: bufferBytes(data, `${key}.data`) };
    if (!isBlob(data)) {
      reader.wrong(`${key}.data`, 'a Buffer, Uint8Array, ArrayBuffer, Blob or file path', describe(data));
    }
    blobs.push({ index, blob: data });
    return { path, data: '' };
  });
}

/** Throws TypeError for what is no buffer, or was transferred elsewhere. */
export function bufferBytes(buffer: unknown, key: string): Uint8Array {
  if (!types.isAnyArrayBuffer(buffer)) {
    throw typeError(`Invalid session options: '${key}' must give an ArrayBuffer, got ${describe(buffer)}.`);
  }
  try {
    return new Uint8Array(buffer);
  } catch {
    throw typeError(`Invalid session options: '${key}' is detached: its bytes were transferred elsewhere.`);
  }
}

function isBlob(value: unknown): value is Blob {
  return (
    typeof value === 'object' && value !== null && 'arrayBuffer' in value && typeof value.arrayBuffer === 'function'
  );
}

/** Whether a value is a place where outputs may be left. */
export const isOutputLocation = (value: unknown): value is OutputLocation =>
  (locations as readonly unknown[]).includes(value);

function parseLocation(reader: OptionReader): ParsedSessionOptions['preferredOutputLocation'] {
  const value = reader.get('preferredOutputLocation');
  if (value === undefined || value === null) return 'cpu';
  const key = 'preferredOutputLocation';
  if (typeof value !== 'object') return reader.among(key, locations, value);
  return new Map(
    Object.entries(value).map(([name, location]) => [name, reader.among(`${key}.${name}`, locations, location)]),
  );
}
