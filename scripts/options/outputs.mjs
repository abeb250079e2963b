// What is written from the schema of the options: path -> text.
import { markdown } from './markdown.mjs';
import { native } from './native.mjs';
import { typescript } from './typescript.mjs';

export const outputs = async (schema) => ({
  'src/options/generated.ts': await typescript(schema),
  'src-native/session/option_fields.h': native(schema),
  'docs/options.md': markdown(schema),
});
