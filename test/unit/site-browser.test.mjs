// The site in a real browser, from a folder as from a disk of its reader's.
import axe from 'axe-core';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { at } from '../../scripts/lib/project.mjs';
import { writeSite } from '../../scripts/lib/site/site.mjs';
import { startBrowser } from '../fixtures/browser.js';

let folder;
let pages;
let browser;
let tab;
beforeAll(() => {
  mkdirSync(at('build'), { recursive: true });
  folder = mkdtempSync(at('build', 'site-'));
  ({ pages } = writeSite(folder));
});
afterEach(() => tab?.close());
afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

const addressOf = (place) => pathToFileURL(join(folder, place)).href;

/** Opens `tab`; answers a list of what goes wrong in it from now on. */
async function openTab(context, options = {}) {
  browser ??= await startBrowser(context);
  tab = await browser.newPage({ viewport: { width: 1440, height: 900 }, ...options });
  const complaints = [];
  tab.on('console', (message) => complaints.push(message.text()));
  tab.on('pageerror', (error) => complaints.push(error.message));
  tab.on('requestfailed', (request) => complaints.push(`failed: ${request.url()}`));
  tab.on('request', (request) => /^(file|data):/.test(request.url()) || complaints.push(`asked for ${request.url()}`));
  return complaints;
}

it('shows every page without a complaint, none wider than the window', { timeout: 300_000 }, async (context) => {
  const complaints = await openTab(context);
  const wide = [];
  for (const place of pages) {
    await tab.goto(addressOf(place));
    for (const width of [1440, 400]) {
      await tab.setViewportSize({ width, height: 900 });
      if ((await tab.evaluate(() => document.documentElement.scrollWidth)) > width) wide.push(`${place}: ${width}`);
    }
  }
  expect({ complaints, wide }).toEqual({ complaints: [], wide: [] });
});

it('leads from page to page', async (context) => {
  const complaints = await openTab(context);
  await tab.goto(addressOf('index.html'));
  await tab.click('nav >> text=NVIDIA GPUs');
  expect(tab.url()).toBe(addressOf('docs/providers/cuda.html'));
  expect(await tab.textContent('nav [aria-current]')).toBe('NVIDIA GPUs');
  await tab.click('.contents a >> nth=0');
  const anchor = new URL(tab.url()).hash.slice(1);
  expect(await tab.locator(`main [id="${anchor}"]`).boundingBox()).toMatchObject({ y: expect.closeTo(68, -2) });
  await tab.click('.brand');
  expect(tab.url()).toBe(addressOf('index.html'));
  expect(complaints).toEqual([]);
});

it('finds headings, members of classes, options and operators, by the keyboard alone', async (context) => {
  const complaints = await openTab(context);
  const found = () => tab.$$eval('.found a', (links) => links.map(({ firstChild }) => firstChild.textContent));
  await tab.goto(addressOf('docs/providers/cuda.html'));
  await tab.keyboard.press('/');
  await tab.keyboard.type('warmup');
  expect((await found())[0]).toBe('warmUp');
  await tab.keyboard.press('Enter');
  await tab.waitForURL(addressOf('docs/api.html') + '#inferencesession.warmUp');
  expect(await tab.locator(':target').textContent()).toMatch(/^warmUp\(/);

  await tab.keyboard.press('/');
  await tab.keyboard.type('memory');
  const [first, second] = await found();
  expect(first).toBe('Memory');
  await tab.keyboard.press('ArrowDown');
  await tab.keyboard.press('ArrowDown');
  expect(await tab.evaluate(() => document.activeElement.firstChild.textContent)).toBe(second);
  await tab.keyboard.press('Escape');
  expect(await tab.isVisible('.found')).toBe(false);

  await tab.fill('input', 'no such thing');
  expect(await tab.textContent('.found')).toBe('Nothing is named so.');
  expect(complaints).toEqual([]);
});

it('is light or dark as the system is, or as its reader chose', async (context) => {
  const complaints = await openTab(context, { colorScheme: 'dark' });
  const ground = () => tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await tab.goto(addressOf('index.html'));
  const dark = await ground();
  await tab.emulateMedia({ colorScheme: 'light' });
  const light = await ground();
  expect(light).not.toBe(dark);
  await tab.click('.theme');
  expect(await ground()).toBe(dark);
  await tab.goto(addressOf('docs/using.html'));
  expect(await ground()).toBe(dark);
  await tab.click('.theme');
  expect(await ground()).toBe(light);
  expect(complaints).toEqual([]);
});

it('is read without scripts too', async (context) => {
  const complaints = await openTab(context, { javaScriptEnabled: false });
  await tab.goto(addressOf('docs/api.html'));
  expect(await tab.isVisible('input')).toBe(false);
  await tab.click('nav >> text=Electron');
  expect(await tab.textContent('h1')).toMatch(/^Electron/);
  expect(complaints).toEqual([]);
});

it('leaves nobody out, light or dark, as axe sees it', { timeout: 300_000 }, async (context) => {
  await openTab(context);
  for (const place of ['index.html', 'docs/electron.html']) {
    await tab.goto(addressOf(place));
    await tab.evaluate(axe.source);
    const violations = async (rules) => {
      const { violations } = await tab.evaluate((runOnly) => globalThis.axe.run(runOnly && { runOnly }), rules);
      return violations.map(({ id, nodes }) => `${place}: ${id}: ${nodes[0].html}`);
    };
    expect(await violations()).toEqual([]);
    await tab.emulateMedia({ colorScheme: 'dark' });
    expect(await violations(['color-contrast'])).toEqual([]);
    await tab.emulateMedia({ colorScheme: 'light' });
  }
});
