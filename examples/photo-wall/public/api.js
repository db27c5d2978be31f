// GraphQL over HTTP. Queries use fetch. Uploads use XMLHttpRequest, which reports their progress.

const PHOTO = 'id url title width height addedAt';
export const ADDED = `subscription Added { photoAdded { ${PHOTO} } }`;
export const VISITORS = 'subscription Visitors($id: ID!) { visitors(id: $id) }';
const PHOTOS = `query Photos($first: Int!, $before: ID) { photos(first: $first, before: $before) { ${PHOTO} } }`;
const ADD = `mutation Add($file: Upload!) { addPhoto(file: $file) { ${PHOTO} } }`;

/** The newest pictures, or those before a picture. */
export async function photos(first, before) {
  return (await query(PHOTOS, { first, before })).photos;
}

/** How many people look at the wall. */
export async function countVisitors() {
  return (await query('{ visitors }')).visitors;
}

async function query(query, variables) {
  const response = await fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ query, variables }),
  });
  return dataOf(response.status, await response.text());
}

/** Sends a file by the GraphQL multipart request specification. Resolves with the new picture. */
export function addPhoto(file, { progress, signal }) {
  const form = new FormData();
  form.append('operations', JSON.stringify({ query: ADD, variables: { file: null } }));
  form.append('map', JSON.stringify({ file: ['variables.file'] }));
  form.append('file', file);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', '/graphql');
    request.setRequestHeader('accept', 'application/json');
    // Proves that this is a script of the same site. Browsers send no fetch metadata over plain HTTP.
    request.setRequestHeader('graphql-require-preflight', '1');
    request.upload.onprogress = ({ loaded, total }) => progress(loaded / total);
    request.onload = () => {
      try {
        resolve(dataOf(request.status, request.responseText).addPhoto);
      } catch (error) {
        reject(error);
      }
    };
    request.onerror = () => reject(new Error('The connection was lost. Is the server still running?'));
    request.onabort = () => reject(new DOMException('Cancelled', 'AbortError'));
    signal.addEventListener('abort', () => request.abort());
    request.send(form);
  });
}

function dataOf(status, text) {
  let result;
  try {
    result = JSON.parse(text);
  } catch {
    throw new Error(`The server sent status ${status} without a GraphQL result.`);
  }
  if (result.errors?.length > 0) throw new Error(result.errors[0].message);
  return result.data;
}
