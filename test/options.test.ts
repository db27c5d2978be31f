import { isBoolean, rule, settle } from '../src/options/settle.ts';

const rules = { html: rule(false, isBoolean, 'a boolean'), etag: rule(true, isBoolean, 'a boolean') };
const settled = (given: unknown) => () => settle('staticFiles', 'static', given, rules);

describe('options', () => {
  it('are filled in with their defaults', () => {
    expect(settled({ html: true, etag: undefined })()).toEqual({ html: true, etag: true });
  });

  it('refuse an unknown name and say which one was meant', () => {
    expect(settled({ htlm: true })).toThrow(/staticFiles: unknown option "htlm"; did you mean "html"\?/);
    expect(settled({ HTML: true })).toThrow(/did you mean "html"\?/);
    expect(settled({ whatever: true })).toThrow(/accepted: html, etag/);
  });

  it('refuse a wrong value and say what is accepted', () => {
    expect(settled({ html: 'yes' })).toThrow(/option "html" is "yes"; accepted: a boolean/);
    expect(settled('html')).toThrow(/the options must be an object, not "html"/);
  });

  it('throw a TypeError with a stable code', () => {
    expect(settled({ html: 1 })).toThrow(TypeError);
    expect(settled({ html: 1 })).toThrow(expect.objectContaining({ code: 'ERR_OPTION' }));
  });

  it('never reach into the prototype', () => {
    expect(settled({ constructor: 1 })).toThrow(/unknown option "constructor"/);
  });
});
