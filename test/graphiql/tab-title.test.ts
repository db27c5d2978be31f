/** @tags once */
import { firstField } from '../../src/graphiql/app/tab-title.ts';

it.each([
  ['{ books { title } }', 'books'],
  ['{ mine: hello }', 'hello'],
  ['# { comment }\nquery ($size: Size = { width: 1 }) { picture(size: $size) }', 'picture'],
  ['{\n  hel', 'hel'],
])('the tab of %j has the name "%s" of its first field', (text, name) => {
  expect(firstField(text)).toBe(name);
});

it.each(['', '# nothing yet', '{', null, undefined])('the tab of %j keeps the title of GraphiQL', (text) => {
  expect(firstField(text)).toBeUndefined();
});
