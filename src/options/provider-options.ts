import type { InferenceSession as Common } from 'onnxruntime-common';

import { typeError } from '../errors.js';
import type { OwnProviderOption } from './generated.js';
import { describe } from '../tensor/tensor-data.js';

export type { NullExecutionProviderOption } from './generated.js';

/**
 * One entry of `executionProviders`: a name, or an object whose `name` decides which further options it has. Options
 * reach the provider as text; camelCase names are those of its option table in snake_case (`deviceId` is `device_id`).
 */
export type ProviderOption = Common.ExecutionProviderOptionMap[Common.ExecutionProviderName] | OwnProviderOption;

export interface ProviderConfig {
  name: string;
  options: [key: string, value: string][];
}

/** Reads `executionProviders`; throws TypeError where it is not an array of names and objects with a name. */
export function parseProviders(value: unknown): ProviderConfig[] {
  if (!Array.isArray(value)) {
    throw typeError(`Invalid session options: 'executionProviders' must be an array, got ${describe(value)}.`);
  }
  return Array.from(value as unknown[], (entry, i) => parseProvider(entry, `executionProviders[${i}]`));
}

function parseProvider(entry: unknown, what: string): ProviderConfig {
  if (typeof entry === 'string') return { name: entry, options: [] };
  if (typeof entry !== 'object' || entry === null) {
    throw typeError(`Invalid session options: '${what}' must be a string or an object, got ${describe(entry)}.`);
  }
  const own = Object.assign(Object.create(null) as object, entry) as Record<string, unknown>;
  const { name, ...rest } = own;
  if (typeof name !== 'string') {
    throw typeError(`Invalid session options: '${what}.name' must be a string, got ${describe(name)}.`);
  }
  const options: [string, string][] = [];
  for (const [key, option] of Object.entries(rest)) {
    if (option === undefined || option === null) continue;
    if (name === 'cpu' && key === 'useArena' && typeof option !== 'boolean') {
      throw typeError(`Invalid session options: '${what}.${key}' must be a boolean, got ${describe(option)}.`);
    }
    options.push([snakeCase(key), optionText(option, `${what}.${key}`)]);
  }
  return { name, options };
}

function optionText(value: unknown, what: string): string {
  switch (typeof value) {
    case 'string':
      return value;
    case 'boolean':
      return value ? '1' : '0';
    case 'number':
    case 'bigint':
      return String(value);
  }
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value.join(',');
  throw typeError(`Invalid session options: '${what}' must be a string, number or boolean, got ${describe(value)}.`);
}

function snakeCase(name: string): string {
  return name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
}
