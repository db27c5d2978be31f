/** @tags graphql slow */
import express from 'express';
import type { Browser } from 'playwright-core';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { launch, visit } from '../chromium.ts';
import { incrementalSchema, V17 } from '../graphql/incremental-schema.ts';
import { until } from '../until.ts';
import { serve } from './serve.ts';

describe('GraphiQL with @defer and @stream', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());

  it('GraphiQL shows the first payload before the deferred resolver finishes, and then the whole result', async () => {
    const { schema, calls } = incrementalSchema();
    const served = await serve(express().use('/graphql', graphqlHTTP(schema)));
    // The editor would close the braces of typed text.
    const query = encodeURIComponent('{ hello list @stream(initialCount: 1) ... @defer { slow } }');
    const ide = await visit(browser, `${served.origin}/graphql?query=${query}`);
    await ide.run.click();
    if (V17) {
      await ide.response.getByText('"world"').waitFor();
      await until(() => calls.names.includes('slow'));
      expect(await ide.textOf(ide.response)).not.toContain('slow');
    }
    calls.release();
    await ide.response.getByText('"slow"', { exact: false }).first().waitFor();
    const shown = (await ide.textOf(ide.response)).replace(/\s/g, '');
    expect(shown).toContain('"hello":"world"');
    expect(shown).toMatch(/"list":\[1,2,3\]/);
    expect(shown).toContain('"slow":"slow"');
    // A library of GraphiQL logs the directives of a document.
    expect(ide.problems.filter((problem) => !problem.includes('annotation token'))).toEqual([]);
    await ide.page.context().close();
    await served.close();
  });
});
