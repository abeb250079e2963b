// What `npm run docs:options` writes of a schema.
import { describe, expect, it } from 'vitest';
import { outputs } from '../../scripts/options/outputs.mjs';

const schema = (session, rest = {}) => ({
  session,
  run: [],
  extra: [],
  providers: {},
  env: [],
  variables: [],
  ...rest,
});
const written = async (session, rest) => {
  const texts = await outputs(schema(session, rest));
  const [typescript, native, markdown] = Object.values(texts);
  return { typescript, native, markdown };
};

describe('an option', () => {
  it('of an enum becomes one of C++ by its own name', async () => {
    const option = {
      name: 'colour',
      ours: true,
      type: 'enum',
      values: ['red', 'green'],
      default: 'green',
      doc: 'Which.',
      native: { member: 'colour' },
    };
    const { typescript, native, markdown } = await written([option]);
    expect(typescript).toContain("colour: reader.oneOf('colour', ['red', 'green'], 'green')");
    expect(typescript).toContain("/** Which. Default: 'green'. Throws TypeError. */\n  colour?: 'red' | 'green';");
    expect(native).toContain('enum class Colour { kRed, kGreen };');
    expect(native).toContain('{"green", Colour::kGreen},');
    expect(native).toContain('  Colour colour = Colour::kGreen;');
    expect(native).toContain('visit("colour", to.colour, kColourNames);');
    expect(markdown).toContain("| `colour` (+) | `'red'`, `'green'` | `'green'` | Which. | TypeError |");
  });

  it('that is a number may stand for none', async () => {
    const option = {
      name: 'limit',
      type: 'integer',
      max: 9,
      default: 0,
      doc: 'How many. 0: any.',
      native: { member: 'limit', default: 'SIZE_MAX', none: 0 },
    };
    const { typescript, native, markdown } = await written([option]);
    expect(typescript).toContain("limit: reader.integer('limit', 0, 9)");
    expect(typescript).not.toContain('limit?:'); // onnxruntime-common declares it
    expect(native).toContain('std::size_t limit = SIZE_MAX;');
    expect(native).toContain('visit("limit", to.limit, Absent{0});');
    expect(markdown).toContain(
      '| `limit` | integer, 0 to 9 | `0` | How many. 0: any. | TypeError; RangeError outside 0 to 9 |',
    );
  });

  it('that is read by hand is known and documented, no more', async () => {
    const option = {
      name: 'thing',
      type: 'object',
      read: 'by hand',
      doc: 'Which.',
      native: { member: 'thing', type: 'Thing' },
    };
    const { typescript, native, markdown } = await written([option]);
    expect(typescript).toContain("sessionOptionKeys: readonly string[] = ['thing'];");
    expect(typescript).not.toContain('reader.object');
    expect(native).toContain('  Thing thing{};');
    expect(native).not.toContain('visit("thing"');
    expect(markdown).toContain('| `thing` | object |');
  });

  it('of a provider has a type', async () => {
    const providers = {
      far: { doc: 'Far.', options: [{ name: 'deviceId', ours: true, type: 'integer', doc: 'Which.' }] },
    };
    const { typescript, markdown } = await written([], { providers });
    expect(typescript).toMatch(
      /export interface FarExecutionProviderOption \{\n[^}]*readonly name: 'far';\n[^}]*deviceId\?: number;/,
    );
    expect(typescript).toContain('export type OwnProviderOption = FarExecutionProviderOption;');
    expect(markdown).toContain('### `far`');
  });
});
