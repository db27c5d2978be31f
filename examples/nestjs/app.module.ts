import { Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { GraphQLModule } from '@nestjs/graphql';
import { Accounts } from './accounts.js';
import { EspalierDriver, type EspalierOptions } from './espalier.driver.js';
import { HttpErrors } from './http-errors.filter.js';
import { Messages } from './messages.resolver.js';

@Module({ providers: [Accounts], exports: [Accounts] })
class AccountsModule {}

@Module({
  imports: [
    GraphQLModule.forRootAsync<EspalierOptions>({
      driver: EspalierDriver,
      imports: [AccountsModule],
      inject: [Accounts],
      useFactory: (accounts: Accounts) => ({
        autoSchemaFile: true,
        espalier: {
          limits: { depth: 12 },
          // Browsers cannot set the headers of a WebSocket, so the token is in its connection_init.
          async caller({ headers }, { connectionParams }) {
            const token = connectionParams?.['authorization'] ?? headers.authorization;
            return typeof token === 'string' ? accounts.find(token.replace(/^Bearer /, '')) : null;
          },
        },
      }),
    }),
  ],
  providers: [Messages, { provide: APP_FILTER, useClass: HttpErrors }],
})
export class AppModule {}
