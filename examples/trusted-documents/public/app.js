import { ids } from './operations.js';

/** Queries use GET, so that browsers and CDNs can cache them. */
async function query(name, variables) {
  const search = variables === undefined ? '' : `?variables=${encodeURIComponent(JSON.stringify(variables))}`;
  return dataOf(await fetch(`/graphql/${ids[name]}${search}`, { headers: { accept: 'application/json' } }));
}

async function mutate(name, variables) {
  const body = JSON.stringify({ documentId: ids[name], variables });
  return dataOf(
    await fetch('/graphql', { method: 'POST', headers: { 'content-type': 'application/json' }, body }),
  );
}

async function dataOf(response) {
  const { data, errors } = await response.json();
  if (errors !== undefined) throw new Error(errors[0].message);
  return data;
}

const article = document.querySelector('#book');

async function show(id) {
  const { book } = await query('Book', { id });
  article.querySelector('h2').textContent = book.title;
  article.querySelector('p').textContent = `${book.author}, ${book.pages} pages, ${book.likes} likes`;
  article.querySelector('button').onclick = async () => {
    await mutate('LikeBook', { id });
    await show(id);
  };
  article.hidden = false;
}

const { books } = await query('Books');
document.querySelector('#books').append(
  ...books.map(({ id, title, author }) => {
    const item = document.createElement('li');
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = `${title} (${author})`;
    button.onclick = () => show(id);
    item.append(button);
    return item;
  }),
);
