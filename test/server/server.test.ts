import request from 'supertest';
import { createServer } from '../../middleware/server.ts';
import { eachExpress } from '../express.ts';

eachExpress((express) => {
  it('serves the app', async () => {
    const app = express();
    app.get('/', (_req, res) => {
      res.send('hello');
    });
    await request(createServer(app)).get('/').expect(200, 'hello');
  });
});
