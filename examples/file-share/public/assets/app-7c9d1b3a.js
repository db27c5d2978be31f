const [signIn, add, status, list] = ['sign-in', 'add', 'status', 'files'].map((id) =>
  document.getElementById(id),
);
const FILE = 'id name size url owner { name }';

/** Sends an operation; a file is sent as the GraphQL multipart request specification says. */
async function run(query, variables = {}, file = undefined) {
  const operations = JSON.stringify({ query, variables });
  let init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: operations };
  if (file !== undefined) {
    const body = new FormData();
    body.set('operations', operations);
    body.set('map', '{"0":["variables.file"]}');
    body.set('0', file);
    init = { method: 'POST', body };
  }
  const { data, errors } = await (await fetch('/graphql', init)).json();
  if (errors !== undefined) throw new Error(errors[0].message);
  return data;
}

function show({ name, size, url, owner }) {
  const item = document.createElement('li');
  const link = Object.assign(document.createElement('a'), { href: url, textContent: name });
  item.append(link, `${size} bytes, from ${owner.name}`);
  list.append(item);
}

/** Shows files that others share, as they arrive. */
function listen() {
  const socket = new WebSocket(
    `${location.protocol.replace('http', 'ws')}//${location.host}/graphql`,
    'graphql-transport-ws',
  );
  const send = (message) => socket.send(JSON.stringify(message));
  socket.onopen = () => send({ type: 'connection_init' });
  socket.onmessage = ({ data }) => {
    const { type, payload } = JSON.parse(data);
    if (type === 'connection_ack')
      send({ id: '1', type: 'subscribe', payload: { query: `subscription { fileShared { ${FILE} } }` } });
    if (type === 'ping') send({ type: 'pong' });
    if (type === 'next') show(payload.data.fileShared);
  };
  socket.onclose = () => setTimeout(listen, 1000);
}

async function start() {
  const { me } = await run('{ me { name } }');
  signIn.hidden = me !== null;
  add.hidden = me === null;
  if (me === null) return;
  status.textContent = `Signed in as ${me.name}`;
  const { files } = await run(`{ files { files { ${FILE} } } }`);
  files.files.forEach(show);
  listen();
}

signIn.onsubmit = async (event) => {
  event.preventDefault();
  const body = JSON.stringify({ name: new FormData(signIn).get('name') });
  await fetch('/sign-in', { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  await start();
};

add.onsubmit = async (event) => {
  event.preventDefault();
  const file = new FormData(add).get('file');
  try {
    const { addFile } = await run(
      `mutation ($file: Upload!) { addFile(file: $file) { ${FILE} } }`,
      { file: null },
      file,
    );
    show(addFile);
    add.reset();
  } catch (error) {
    status.textContent = error.message;
  }
};

await start();
